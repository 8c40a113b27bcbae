/**
 * Check a built site in a real browser: `node check.mjs FOLDER CHROMIUM [NAME ...]`.
 *
 * NAME is the full name of a documented class, which the search must find. Prints a line for each thing that is wrong,
 * and exits with 1 if there is one.
 */

import { chromium } from "playwright-core";

import { checkPage } from "./page.mjs";
import { checkCopy, checkDark, checkSearch } from "./reader.mjs";
import { pagesOf, serve } from "./serve.mjs";

const AT_ONCE = 4;
const [folder, executablePath, ...names] = process.argv.slice(2);
const pages = await pagesOf(folder);
const { address, stop } = await serve(folder);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

let wrong = 0;
function tell(lines) {
  for (const line of lines) console.log(line);
  wrong += lines.length;
}

const left = [...pages];
async function work() {
  const context = await browser.newContext();
  for (let path = left.shift(); path; path = left.shift()) tell(await checkPage(context, address, path));
  await context.close();
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
tell(await checkSearch(browser, address, names));
tell(await checkCopy(browser, address, "functions/grad_factor.html"));
tell(await checkDark(browser, address));

await browser.close();
stop();
console.log(`${pages.length} pages, ${names.length} names searched: ${wrong || "nothing"} wrong`);
if (!pages.length || !names.length || wrong) process.exitCode = 1;
