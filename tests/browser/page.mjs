/** What must hold of every page: no barrier, no sideways scrolling on a phone, no table of which only the names are seen,
 * no error, no weight, no request away. */

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
/** In bytes, compressed: a page with all that it loads, its fonts too. */
const HEAVIEST = 300_000;
const PHONE = { width: 375, height: 667 };
const DESK = { width: 1280, height: 800 };

/** The most that a page has weighed so far. */
export let heaviest = 0;

/** Look at a page in light on a phone, then in light and in dark on a desk; return what is wrong, in lines. */
export async function checkPage(context, { address, sizeOf }, path) {
  const wrong = new Set();
  const loaded = new Set();
  const tab = await context.newPage();
  tab.on("response", (answer) => loaded.add(answer.url()));
  await watch(tab, address, (message) => wrong.add(`${path}: ${message}`));
  await tab.setViewportSize(PHONE);
  await tab.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await tab.goto(`${address}/${path}`, { waitUntil: "load" });
  const wide = await tab.evaluate(tooWide);
  if (wide) wrong.add(`${path}: scrolls sideways at ${PHONE.width} px: ${wide}`);
  const cut = await tab.evaluate(cutTables);
  for (const table of cut) wrong.add(`${path}: at ${PHONE.width} px a table shows its first column alone: ${table}`);
  await tab.evaluate(AXE);
  for (const [viewport, colorScheme] of [[PHONE, "light"], [DESK, "light"], [DESK, "dark"]]) {
    await tab.setViewportSize(viewport);
    await tab.emulateMedia({ colorScheme });
    for (const line of await tab.evaluate(violations, WCAG)) {
      wrong.add(`${path}, ${colorScheme}, ${viewport.width} px: ${line}`);
    }
  }
  await tab.close();
  const weight = [...loaded].reduce((sum, url) => sum + sizeOf(url), 0);
  if (weight > HEAVIEST) wrong.add(`${path}: weighs ${weight} bytes, compressed, and at most ${HEAVIEST} are allowed`);
  heaviest = Math.max(heaviest, weight);
  return [...wrong];
}

/** Report every error on the console, every failed answer, and every request to another machine, which is refused. */
export function watch(tab, address, report) {
  tab.on("console", (message) => message.type() === "error" && report(`console: ${message.text()}`));
  tab.on("pageerror", (error) => report(`script: ${error.message}`));
  tab.on("response", (answer) => answer.status() >= 400 && report(`${answer.status()}: ${answer.url()}`));
  tab.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${address}/`) && !url.startsWith("data:")) report(`asks elsewhere: ${url}`);
  });
  return tab.route((url) => url.protocol.startsWith("http") && url.origin !== address, (route) => route.abort());
}

/** In the page: what reaches past the right edge, or nothing. */
function tooWide() {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return "";
  const found = [...document.body.querySelectorAll("*")].filter(
    (element) => element.getBoundingClientRect().right > root.clientWidth + 1 && !element.closest(".sidebar-drawer, .toc-drawer"),
  );
  const name = (element) => `${element.tagName.toLowerCase()}.${element.className}`.slice(0, 60);
  return `${root.scrollWidth} px, for example ${found.slice(-3).map(name).join(", ") || "the page itself"}`;
}

/** In the page: the tables whose second column begins where the reader has to scroll to, by their first words. */
function cutTables() {
  const need = 64; // px of the second column: a verdict, a number, half a word
  const cut = [...document.querySelectorAll(".gradspec-scroll table, .table-wrapper table")].filter((table) => {
    const second = table.querySelector("tr")?.cells[1];
    const place = table.closest(".gradspec-scroll, .table-wrapper").getBoundingClientRect();
    if (!second || !place.width) return false;
    const at = second.getBoundingClientRect();
    return Math.min(at.right, place.right) - at.left < Math.min(need, at.width) - 1;
  });
  return cut.map((table) => table.textContent.trim().replace(/\s+/g, " ").slice(0, 50));
}

/** In the page: the violations that axe finds, with the first element of each. */
async function violations(tags) {
  const { violations: found } = await window.axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
  return found.map(({ id, help, nodes }) => {
    const first = nodes[0];
    return `${id}: ${help}; ${nodes.length} times, first ${first.html.slice(0, 160)} (${first.any[0]?.message ?? first.all[0]?.message ?? ""})`;
  });
}
