// The list of versions leads to the same page of another version, or to its first page if it has no such page.
"use strict";
(() => {
  const list = document.getElementById("site-version");
  const here = list.value;
  const { root, page } = list.dataset;

  for (const version of globalThis.siteVersions) {
    if (version !== here) list.add(new Option(version));
  }
  list.disabled = list.length < 2;

  async function open(version) {
    const folder = new URL(`${root}../${version}/`, location.href);
    const same = new URL(`${page}.html`, folder);
    // From a disk nothing can be asked for: then the first page, which every version has.
    const found = await fetch(same, { method: "HEAD" }).then((answer) => answer.ok, () => false);
    location.assign(found ? same : new URL("index.html", folder));
  }

  list.addEventListener("change", () => open(list.value));
  // A browser that comes back shows the choice that was made; the page is still of this version.
  addEventListener("pageshow", () => (list.value = here));
})();
