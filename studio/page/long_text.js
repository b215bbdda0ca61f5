// Long text, folded: a few lines at first, more of it when asked. However long a text is, a row stays cheap to draw.

import {button, el, put} from "./dom.js";
import {cutAt, visible} from "./text.js";
import {bytes, count} from "./format.js";

const FIRST_LINES = 16;
const FIRST_CHARACTERS = 2400;
const STEP = 60_000; // characters added by one press: what a slow machine lays out within a frame or two

/** Where the first lines of a text end, or its first characters; its length where it is short enough. */
export function foldAt(text, lines = FIRST_LINES, characters = FIRST_CHARACTERS) {
  let end = -1;
  for (let line = 0; line < lines; line += 1) {
    end = text.indexOf("\n", end + 1);
    if (end < 0 || end > characters) break;
  }
  const cut = end < 0 || end > characters ? characters : end;
  // A fold that hides next to nothing is a nuisance.
  return text.length <= cut * 1.25 + 80 && !manyLines(text, lines + 4) ? text.length : Math.min(cut, text.length);
}

function manyLines(text, lines) {
  let at = -1;
  for (let line = 0; line < lines; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) return false;
  }
  return true;
}

/** A text as it is, in a fixed pitch, with a button for more where it is long. */
export function longText(text, name = "output") {
  const shown = foldAt(text);
  // Code is not wrapped: its block scrolls sideways, and a keyboard must reach what scrolls.
  const reached = name === "code" ? { tabindex: "0", role: "group", "aria-label": name } : null;
  const pre = el("pre", { dir: "auto", ...reached }, visible(cutAt(text, shown)));
  const whole = el("div", { class: "long" }, pre);
  if (shown < text.length) whole.append(moreOf(text, shown, (next, end) => put(pre, [visible(text.slice(next, end))])));
  return whole;
}

/** A button that shows the next part of a text by `show(from, end)` until all of it is there. */
export function moreOf(text, shown, show) {
  let at = shown;
  const label = () => `Show ${count(remainingLines(text, at))} more lines (${bytes(text.length - at)})`;
  const more = button(label(), () => {
    const end = Math.min(text.length, at + cutAt(text.slice(at, at + STEP), STEP).length);
    show(at, end);
    at = end;
    if (at >= text.length) more.remove();
    else more.textContent = label();
  }, { class: "more" });
  return more;
}

function remainingLines(text, from) {
  let lines = 1;
  for (let at = text.indexOf("\n", from + 1); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}
