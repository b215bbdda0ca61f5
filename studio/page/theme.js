// Dark or light: as the system has it, or as was chosen here.

import {button} from "./dom.js";

const KEPT_AS = "incarnate-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const SIGNS = { auto: "◐", light: "○", dark: "●" };

/** The switch. What was chosen is kept in the browser, where that is allowed. */
export function themeSwitch() {
  let chosen = kept();
  const one = button("", () => {
    chosen = NEXT[chosen];
    keep(chosen);
    apply(chosen, one);
  }, { class: "quiet theme" });
  apply(chosen, one);
  return one;
}

function apply(chosen, one) {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  one.textContent = SIGNS[chosen];
  one.setAttribute("aria-label", `Theme: ${chosen}. Switch to ${NEXT[chosen]}`);
  one.title = `Theme: ${chosen}`;
}

function kept() {
  try {
    const chosen = localStorage.getItem(KEPT_AS);
    return Object.hasOwn(NEXT, chosen ?? "") ? chosen : "auto";
  } catch {
    return "auto"; // a page from a file may have no storage
  }
}

function keep(chosen) {
  try {
    localStorage.setItem(KEPT_AS, chosen);
  } catch {
    // it holds until the page is closed
  }
}
