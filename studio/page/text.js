// Text from a log, made visible: control, escape and bidirectional characters are shown as escapes, never obeyed.

import {el} from "./dom.js";

// C0 but tab and line feed, DEL and C1, ANSI sequences whole, zero-width and bidirectional controls, U+2028 and U+2029,
// tags, lone surrogates, piles of combining marks, which would cover the lines around them, and U+FFFD, which is where
// incarnate mended damaged text. Joiners between letters and in emoji are what they are for.
const STRANGE =
  /\u001b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~])?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffd]|[\u{e0000}-\u{e007f}]|(?<![\p{L}\p{M}\p{Extended_Pictographic}\u{1f3fb}-\u{1f3ff}])[\u200c\u200d]|\p{M}{12,}|\p{Cs}/gu;

const MOST_MARKS = 2000; // a text of nothing but escapes would make as many elements

const NAMES = new Map([
  [0x1b, "escape sequence"],
  [0x200b, "zero width space"],
  [0x200e, "left-to-right mark"],
  [0x200f, "right-to-left mark"],
  [0x202a, "left-to-right embedding"],
  [0x202b, "right-to-left embedding"],
  [0x202c, "pop directional formatting"],
  [0x202d, "left-to-right override"],
  [0x202e, "right-to-left override"],
  [0x2066, "left-to-right isolate"],
  [0x2067, "right-to-left isolate"],
  [0x2068, "first strong isolate"],
  [0x2069, "pop directional isolate"],
]);

function escapeOf(strange) {
  const code = strange.codePointAt(0);
  if (code > 0xff && [...strange].length > 1) return `\\u{${code.toString(16)} and ${[...strange].length - 1} more marks}`;
  const rest = strange.slice(code > 0xffff ? 2 : 1);
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}${rest}`;
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

function marked(strange) {
  const code = strange.codePointAt(0);
  if (code === 0xfffd) {
    return el("span", { class: "mended", title: "mended: this was not valid text in the harness's record" }, "\ufffd");
  }
  const named = NAMES.get(code) ?? "control character";
  return el("span", { class: "escape", title: `U+${code.toString(16).toUpperCase().padStart(4, "0")}, ${named}` }, escapeOf(strange));
}

/** A text as a string in which every strange character is an escape: for titles, labels and copies of one line. */
export function plain(text) {
  return String(text).replace(STRANGE, (strange) => (strange === "\ufffd" ? strange : escapeOf(strange)));
}

/** A text as nodes: strings, and marks for what would not be seen. */
export function visible(text) {
  const given = String(text).replaceAll("\r\n", "\n");
  STRANGE.lastIndex = 0;
  if (!STRANGE.test(given)) return [document.createTextNode(given)];
  STRANGE.lastIndex = 0;
  const nodes = [];
  let from = 0;
  for (const match of given.matchAll(STRANGE)) {
    if (nodes.length > 2 * MOST_MARKS) break;
    if (match.index > from) nodes.push(document.createTextNode(given.slice(from, match.index)));
    nodes.push(marked(match[0]));
    from = match.index + match[0].length;
  }
  if (from < given.length) nodes.push(document.createTextNode(plain(given.slice(from))));
  return nodes;
}

/** JSON in which what would not be seen is escaped, as JSON escapes it: what is copied is the same value. */
export function plainJson(text) {
  return text.replace(STRANGE, (strange) => (strange === "\ufffd" ? strange : [...Array(strange.length).keys()].map((at) => `\\u${strange.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")));
}

/** One line of at most `length` characters, for a summary. */
export function oneLine(text, length) {
  const start = String(text).slice(0, length * 4).replace(/\s+/g, " ").trim();
  const line = plain(start.length > length ? `${cutAt(start, length)}…` : start);
  return line;
}

/** The first `length` UTF-16 units of a text, one less where that would split a character. */
export function cutAt(text, length) {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
