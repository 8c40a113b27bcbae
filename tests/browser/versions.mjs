/** Change the version in a real browser: `node versions.mjs FOLDER CHROMIUM`, where FOLDER holds two versions. */

import { chromium } from "playwright-core";

import { serve } from "./serve.mjs";

const [folder, executablePath] = process.argv.slice(2);
const site = await serve(folder);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const tab = await browser.newPage();
const wrong = [];

await tab.goto(`${site.address}/index.html`);
await tab.waitForURL(/\/\d[^/]*\/index\.html$/); // where the first page leads to
const newest = await tab.locator("#site-version").inputValue();
const other = (await tab.locator("#site-version option").allTextContents()).find((version) => version !== newest);
if (!other) wrong.push("the list has no other version");

/** Choose the other version on a page; it must lead to an address that ends so. */
async function choose(page, end) {
  await tab.goto(`${site.address}/${newest}/${page}`);
  await tab.locator("#site-version").selectOption(other);
  try {
    await tab.waitForURL(`${site.address}/${other}/${end}`, { timeout: 5_000 });
  } catch {
    wrong.push(`${page} leads to ${tab.url()}, and not to ${other}/${end}`);
  }
}

if (other) {
  await choose("index.html", "index.html");
  await choose("functions/grad_factor.html", "functions/grad_factor.html");
  await choose("benchmarks.html", "index.html"); // the other version has no such page
}
await browser.close();
site.stop();
for (const line of wrong) console.log(line);
console.log(`from version ${newest} to ${other}: ${wrong.length || "nothing"} wrong`);
if (wrong.length) process.exitCode = 1;
