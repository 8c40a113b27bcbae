// What scrolls sideways can be scrolled from the keyboard: it takes the focus while it is wider than its place.
"use strict";
(() => {
  const boxes = ".gradspec-scroll, .table-wrapper, div.math, div.highlight pre";

  function letFocus() {
    for (const box of document.querySelectorAll(boxes)) {
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
    }
  }

  addEventListener("DOMContentLoaded", letFocus);
  addEventListener("load", letFocus); // fonts have changed the widths
  addEventListener("resize", letFocus);
})();
