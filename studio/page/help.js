// What the keys do.

import {button, el} from "./dom.js";

const KEYS = [
  ["j  k", "the next event, the one before"],
  ["g  G", "the first event, the last"],
  ["f", "follow: keep the end in sight"],
  ["/", "search"],
  ["n  N", "the next match, the one before"],
  ["r", "every event as its JSON"],
  ["1 … 6", "the tabs"],
  ["s", "find a session"],
  ["?", "this list"],
  ["Esc", "close, or leave the search"],
];

const OF_A_SERVER = new Set(["f", "s"]); // nothing grows in an exported file, and there is one session in it

/** A dialog with the keys; call `showModal` on it. */
export function helpDialog(embedded) {
  const rows = KEYS.filter(([keys]) => !embedded || !OF_A_SERVER.has(keys)).map(([keys, does]) => el("tr", null, el("th", { scope: "row" }, keys.split("  ").map((key) => el("kbd", null, key))), el("td", null, does)));
  const dialog = el("dialog", { class: "help", "aria-labelledby": "help-title" }, el("h2", { id: "help-title" }, "Keys"), el("table", null, el("tbody", null, rows)), button("Close", () => dialog.close()));
  return dialog;
}
