/**
 * Check a built site in a real browser: `node check.mjs FOLDER CHROMIUM [NAME ...]`.
 *
 * NAME is the full name of a documented class, which the search must find. Prints a line for each thing that is wrong,
 * and exits with 1 if there is one.
 */

import { chromium } from "playwright-core";

import { checkPage, heaviest } from "./page.mjs";
import { checkCommand, checkCopy, checkDark, checkFilter, checkSearch } from "./reader.mjs";
import { pagesOf, serve } from "./serve.mjs";

const AT_ONCE = 4;
const [folder, executablePath, ...names] = process.argv.slice(2);
const pages = await pagesOf(folder);
const site = await serve(folder);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

let wrong = 0;

/** Print what a check finds wrong; one that cannot be made is wrong too. */
async function tell(name, check) {
  const lines = await check.catch((error) => [`${name}: cannot be checked: ${error.message.split("\n")[0]}`]);
  for (const line of lines) console.log(line);
  wrong += lines.length;
}

const left = [...pages];
async function work() {
  const context = await browser.newContext();
  for (let path = left.shift(); path; path = left.shift()) await tell(path, checkPage(context, site, path));
  await context.close();
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
await tell("search", checkSearch(browser, site.address, names));
await tell("copy", checkCopy(browser, site.address, "functions/grad_factor.html"));
await tell("command", checkCommand(browser, site.address, "functions/grad_factor.html"));
await tell("filter", checkFilter(browser, site.address, "gallery.html", "peft"));
await tell("dark mode", checkDark(browser, site.address));

await browser.close();
site.stop();
console.log(`the heaviest page takes ${heaviest} bytes, compressed, with all that it loads`);
console.log(`${pages.length} pages, ${names.length} names searched: ${wrong || "nothing"} wrong`);
if (!pages.length || !names.length || wrong) process.exitCode = 1;
