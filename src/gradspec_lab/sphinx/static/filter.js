// A box above a list of entries keeps those that have all its words. Without this script the whole list is shown.
"use strict";
(() => {
  /** What an entry says, without what is folded in it. */
  function wordsOf(entry) {
    const copy = entry.cloneNode(true);
    for (const fold of copy.querySelectorAll("details")) fold.remove();
    return copy.textContent.toLowerCase();
  }

  addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector(".gradspec-filter");
    const entries = [...document.querySelectorAll(".gradspec-entry")].map((entry) => ({ entry, words: wordsOf(entry) }));
    if (!place || !entries.length) return;
    const box = Object.assign(document.createElement("input"), { type: "search", placeholder: "Filter by package or word" });
    box.setAttribute("aria-label", "Filter the entries by package or word");
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    place.append(box, " ", count);
    box.addEventListener("input", () => {
      const asked = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const one of entries) one.entry.hidden = !asked.every((word) => one.words.includes(word));
      const kept = entries.filter((one) => !one.entry.hidden).length;
      count.textContent = asked.length ? `${kept} of ${entries.length} entries` : "";
    });
  });
})();
