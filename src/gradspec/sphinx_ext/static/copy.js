// A button beside a verdict copies the command that measures it again. Without this script the buttons stay hidden.
"use strict";
(() => {
  const copied = "Copied";

  // navigator.clipboard is missing where a site comes over plain HTTP.
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const box = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }

  addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("button.gradspec-copy")) {
      const label = button.textContent;
      button.hidden = false;
      button.addEventListener("click", async () => {
        await copy(button.dataset.command);
        button.textContent = copied;
        setTimeout(() => (button.textContent = label), 1500);
      });
    }
  });
})();
