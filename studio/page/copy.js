// The clipboard, and the small notes that say what happened.

import {el} from "./dom.js";

/** Show a note for some seconds, and have it read out. */
export function notify(text, wait = 2500) {
  let place = document.getElementById("notes");
  if (!place) {
    place = el("div", { id: "notes", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  const note = el("div", { class: "note" }, text);
  place.replaceChildren(note);
  setTimeout(() => note.remove(), wait);
}

/** Copy a text and say so; `what` names it. Without a clipboard (a file, plain http elsewhere) a selection does it. */
export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text);
  }
  notify(`${what} copied`);
}

function copyBySelection(text) {
  const area = el("textarea", { class: "off-screen", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  document.body.append(area);
  const before = document.activeElement;
  area.select();
  document.execCommand("copy");
  area.remove();
  before?.focus?.({ preventScroll: true });
}
