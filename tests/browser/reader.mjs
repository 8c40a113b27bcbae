/** What a reader does once: search for a class, copy an example or a command, switch to dark. */

import { watch } from "./page.mjs";

/** Search for each name as a reader would; its entry must be among the results, and its link must lead to the entry. */
export async function checkSearch(browser, address, names) {
  const wrong = [];
  const tab = await browser.newPage();
  await watch(tab, address, (message) => wrong.push(`search: ${message}`));
  for (const name of names) {
    const word = name.split(".").pop();
    await tab.goto(`${address}/search.html?q=${word}`);
    const entry = tab.locator(`#search-results a[href$="#${name}"]`).first();
    try {
      await entry.click({ timeout: 20_000 });
      await tab.waitForURL((url) => url.hash === `#${name}`);
      const there = await tab.evaluate((id) => document.getElementById(id)?.textContent ?? "", name);
      if (!there.includes(word)) wrong.push(`search: the result for ${word} leads to no entry of ${name}`);
    } catch {
      wrong.push(`search: ${word} does not find ${name}`);
    }
  }
  await tab.close();
  return wrong;
}

/** Press the first copy button of a page; the clipboard must hold the code without prompts and without output. */
export async function checkCopy(browser, address, path) {
  const context = await browser.newContext();
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: address });
  const tab = await context.newPage();
  await tab.goto(`${address}/${path}`);
  const block = tab.locator("div.highlight", { has: tab.locator("button.copybtn"), hasText: ">>> " }).first();
  const shown = await block.locator("pre").innerText();
  await block.hover();
  await block.locator("button.copybtn").click();
  const copied = await tab.evaluate(() => navigator.clipboard.readText());
  await context.close();
  const code = shown.split("\n").filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4)).join("\n");
  return copied.trim() === code.trim() && code ? [] : [`${path}: the copy button gives ${JSON.stringify(copied)}, not ${JSON.stringify(code)}`];
}

/** Type a word into the filter of a page; the entries that have it must stay, and no other. */
export async function checkFilter(browser, address, path, word) {
  const wrong = [];
  const tab = await browser.newPage();
  await watch(tab, address, (message) => wrong.push(`${path}: ${message}`));
  await tab.goto(`${address}/${path}`);
  const entries = tab.locator(".gradspec-entry");
  const before = await entries.count();
  await tab.locator(".gradspec-filter input").fill(word);
  const kept = await tab.locator(".gradspec-entry:visible").allInnerTexts();
  if (!kept.length || kept.length === before) wrong.push(`${path}: ${word} keeps ${kept.length} of ${before} entries`);
  for (const text of kept) if (!text.toLowerCase().includes(word)) wrong.push(`${path}: ${word} keeps ${JSON.stringify(text)}`);
  await tab.locator(".gradspec-filter input").fill("");
  if ((await tab.locator(".gradspec-entry:visible").count()) !== before) wrong.push(`${path}: not all entries come back`);
  await tab.close();
  return wrong;
}

/** Unfold the verdicts of a page and press the button beside the first; it must copy the command that measures it again. */
export async function checkCommand(browser, address, path) {
  const context = await browser.newContext();
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: address });
  const tab = await context.newPage();
  await tab.goto(`${address}/${path}`);
  const button = tab.locator("button.gradspec-copy").first();
  await tab.locator("details", { has: button }).first().locator("> summary").click();
  const law = await tab.locator("tr", { has: button }).locator("td code").first().innerText();
  await button.click();
  await tab.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await tab.evaluate(() => navigator.clipboard.readText());
  await context.close();
  const right = copied.startsWith("gradspec check ") && copied.endsWith(` --law ${law}`);
  return right ? [] : [`${path}: the button beside the verdict of ${law} gives ${JSON.stringify(copied)}`];
}

/** Press the theme's switch until the page is dark; its background must then be darker than its text. */
export async function checkDark(browser, address) {
  const context = await browser.newContext({ colorScheme: "light" });
  const tab = await context.newPage();
  await tab.goto(`${address}/index.html`);
  const before = await tab.evaluate(colours);
  for (let i = 0; i < 3 && (await tab.evaluate(() => document.body.dataset.theme)) !== "dark"; i++) {
    await tab.locator("button.theme-toggle:visible").first().click();
  }
  const after = await tab.evaluate(colours);
  await tab.reload();
  const kept = await tab.evaluate(() => document.body.dataset.theme);
  await context.close();
  const wrong = [];
  if (!(before.ground > before.text)) wrong.push("dark mode: the page is not light at first");
  if (!(after.ground < after.text)) wrong.push("dark mode: the switch does not make the page dark");
  if (kept !== "dark") wrong.push("dark mode: it is forgotten on the next page");
  return wrong;
}

/** In the page: how bright its ground and its text are, from 0 to 765. */
function colours() {
  const brightness = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  const style = getComputedStyle(document.body);
  return { ground: brightness(style.backgroundColor), text: brightness(style.color) };
}
