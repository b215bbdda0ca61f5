// Markdown inside a line: code, emphasis, links. One pass with a stack of what was opened; whatever is never closed is
// the text that it was. Links lead only where a person can see them lead.

import {el} from "./dom.js";
import {visible, plain} from "./text.js";
import {imageChip} from "./images.js";

const SAFE = /^(?:https?:\/\/|mailto:)[^\s<>"'`\\]+$/i;
const BARE = /https?:\/\/[^\s<>"'`\\|]{1,2000}/y;
const TRAILING = /[.,;:!?)\]}*_~]+$/;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const LONGEST_LINK = 4000; // how far the end of a link is looked for

/** The nodes of a line or paragraph of markdown. */
export function inlineMarkdown(text) {
  const root = { mark: "", nodes: [], from: 0 };
  const stack = [root];
  const missing = new Set(); // runs of backticks of a length that no longer closes: they are not looked for again
  let plainText = "";
  const top = () => stack[stack.length - 1];
  const flush = () => {
    if (plainText) top().nodes.push(...visible(plainText));
    plainText = "";
  };
  let at = 0;
  while (at < text.length) {
    const found = special(text, at, missing);
    if (!found) plainText += text[at++];
    else if (found.text !== undefined) {
      plainText += found.text;
      at = found.end;
    } else {
      flush();
      if (found.node) top().nodes.push(found.node);
      else toggle(stack, found.mark, text, at);
      at = found.end;
    }
  }
  flush();
  while (stack.length > 1) unwind(stack);
  return root.nodes;
}

function special(text, at, missing) {
  switch (text[at]) {
    case "\\":
      return ESCAPABLE.test(text[at + 1] ?? "") ? { text: text[at + 1], end: at + 2 } : null;
    case "`":
      return codeSpan(text, at, missing);
    case "*":
    case "_":
    case "~":
      return emphasisMark(text, at);
    case "!":
      return text[at + 1] === "[" ? link(text, at + 1, true) : null;
    case "[":
      return link(text, at, false);
    case "<":
      return angleLink(text, at);
    case "h":
    case "H":
      return bareLink(text, at);
    default:
      return null;
  }
}

function codeSpan(text, at, missing) {
  let run = 1;
  while (text[at + run] === "`") run += 1;
  const ticks = "`".repeat(run);
  let end = missing.has(run) ? -1 : text.indexOf(ticks, at + run);
  while (end >= 0 && text[end + run] === "`") {
    let beyond = end + run;
    while (text[beyond] === "`") beyond += 1;
    end = text.indexOf(ticks, beyond);
  }
  if (end < 0) {
    missing.add(run);
    return { text: ticks, end: at + run };
  }
  const body = text.slice(at + run, end).replaceAll("\n", " ");
  const code = /^ .*\S.* $/.test(body) ? body.slice(1, -1) : body;
  return { node: el("code", null, visible(code)), end: end + run };
}

function emphasisMark(text, at) {
  const mark = text[at];
  const double = text[at + 1] === mark;
  if (mark === "~" && !double) return null;
  const length = double ? 2 : 1;
  const before = text[at - 1] ?? " ";
  const after = text[at + length] ?? " ";
  const opens = /\S/.test(after);
  const closes = /\S/.test(before);
  const inWord = mark === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
  if ((!opens && !closes) || inWord) return { text: mark.repeat(length), end: at + length };
  return { mark: mark.repeat(length), opens, closes, end: at + length };
}

const EMPHASIS = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" };
const DEEPEST_EMPHASIS = 8;

function toggle(stack, mark, text, at) {
  const { opens, closes } = emphasisMark(text, at);
  const open = closes ? stack.findIndex((one) => one.mark === mark) : -1;
  if (open > 0) {
    while (stack.length > open + 1) unwind(stack);
    const { nodes } = stack.pop();
    stack[stack.length - 1].nodes.push(el(EMPHASIS[mark], null, nodes));
  } else if (opens && stack.length < DEEPEST_EMPHASIS) stack.push({ mark, nodes: [] });
  else stack[stack.length - 1].nodes.push(document.createTextNode(mark));
}

// What was opened and never closed was text.
function unwind(stack) {
  const { mark, nodes } = stack.pop();
  const below = stack[stack.length - 1].nodes;
  below.push(document.createTextNode(mark));
  for (const node of nodes) below.push(node);
}

function link(text, at, image) {
  const bound = Math.min(text.length, at + LONGEST_LINK);
  const close = closing(text, at, bound);
  if (close < 0 || text[close + 1] !== "(") return null;
  const end = text.indexOf(")", close + 2);
  if (end < 0 || end > bound + LONGEST_LINK) return null;
  const label = text.slice(at + 1, close);
  const target = text.slice(close + 2, end).trim().split(/\s+/)[0] ?? "";
  return { node: image ? imageChip(label || "image", target) : safeLink(target, label), end: end + 1 };
}

// The bracket that closes the one at `at`; nothing is looked for beyond the paragraph's next blank or `bound`.
function closing(text, at, bound) {
  let depth = 0;
  for (let end = at; end < bound; end += 1) {
    if (text[end] === "\\") end += 1;
    else if (text[end] === "[") depth += 1;
    else if (text[end] === "]" && --depth === 0) return end;
    if (depth > 8) return -1;
  }
  return -1;
}

function angleLink(text, at) {
  const end = text.slice(at, at + 2000).indexOf(">");
  const target = text.slice(at + 1, at + Math.max(end, 1));
  return end > 0 && SAFE.test(target) ? { node: safeLink(target, target), end: at + end + 1 } : null;
}

function bareLink(text, at) {
  if (/[\p{L}\p{N}]/u.test(text[at - 1] ?? " ")) return null;
  BARE.lastIndex = at;
  const match = BARE.exec(text);
  if (!match) return null;
  const target = match[0].replace(TRAILING, "");
  return SAFE.test(target) ? { node: safeLink(target, target), end: at + target.length } : null;
}

/** A link to http, https or mailto, with its target shown; for any other target what was written, as text. */
export function safeLink(target, label) {
  if (!SAFE.test(target)) return el("span", { class: "no-link" }, visible(`${label} (${target})`));
  const shown = label === target || !label.trim() ? null : el("span", { class: "target" }, ` ${plain(hostOf(target))}`);
  const attributes = { href: target, rel: "noopener noreferrer nofollow", target: "_blank", title: plain(target) };
  return el("a", attributes, visible(label.trim() ? label : target), shown);
}

function hostOf(target) {
  if (target.toLowerCase().startsWith("mailto:")) return `(${target.slice(7)})`;
  try {
    return `(${new URL(target).host})`;
  } catch {
    return `(${target})`;
  }
}
