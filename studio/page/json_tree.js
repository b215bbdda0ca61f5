// JSON as a tree that opens where one looks. A level is built when it is opened: depth and breadth cost nothing closed.

import {button, el} from "./dom.js";
import {cutAt, oneLine, visible} from "./text.js";
import {count, counted} from "./format.js";
import {imageOf} from "./images.js";
import {longText} from "./long_text.js";

const LEVEL_STEP = 100; // entries of a level that are shown at once
const LONG_STRING = 160;

/** A JSON value as an element; `open` opens its first level. */
export function jsonTree(value, open = true) {
  return el("div", { class: "json" }, valueElement(value, open));
}

function valueElement(value, open) {
  if (typeof value === "string") return stringElement(value);
  if (value === null || typeof value !== "object") return el("span", { class: `json-${value === null ? "null" : typeof value}` }, String(value));
  const entries = Array.isArray(value) ? value.length : Object.keys(value).length;
  if (!entries) return el("span", { class: "json-empty" }, Array.isArray(value) ? "[]" : "{}");
  const image = imageOf(value);
  return image ? el("span", null, image, branch(value, false)) : branch(value, open);
}

function stringElement(value) {
  const image = imageOf(value);
  if (image) return image;
  if (value.length <= LONG_STRING && !value.includes("\n")) return el("span", { class: "json-string", dir: "auto" }, '"', visible(value), '"');
  return el("div", { class: "json-text" }, longText(value, "text"));
}

function branch(value, open) {
  const isList = Array.isArray(value);
  const size = isList ? value.length : Object.keys(value).length;
  const told = el("span", { class: "json-told" }, isList ? `[${count(size)}]` : `{${counted(size, "key")}}`, " ", el("span", { class: "json-preview" }, preview(value)));
  const body = el("div", { class: "json-level" });
  const details = el("details", { class: "json-branch" }, el("summary", null, told), body);
  const build = () => body.childElementCount || grow(body, value, 0);
  details.addEventListener("toggle", () => details.open && build());
  if (open) {
    build();
    details.open = true;
  }
  return details;
}

function grow(body, value, from) {
  const isList = Array.isArray(value);
  const keys = isList ? null : Object.keys(value);
  const size = isList ? value.length : keys.length;
  const end = Math.min(size, from + LEVEL_STEP);
  for (let at = from; at < end; at += 1) {
    const key = isList ? at : keys[at];
    body.append(el("div", { class: "json-entry" }, el("span", { class: "json-key" }, visible(cutAt(String(key), 400))), ": ", valueElement(value[key], false)));
  }
  if (end < size) {
    const more = button(`Show ${count(Math.min(LEVEL_STEP, size - end))} of ${count(size - end)} more`, () => {
      more.remove();
      grow(body, value, end);
    }, { class: "more" });
    body.append(more);
  }
}

/** The beginning of a value in one line, without walking all of it. */
export function preview(value) {
  if (typeof value === "string") return oneLine(value, 100);
  if (value === null || typeof value !== "object") return String(value);
  const keys = Object.keys(value).slice(0, 5);
  return oneLine(keys.map((key) => (Array.isArray(value) ? short(value[key]) : `${key}: ${short(value[key])}`)).join(", "), 100);
}

function short(value) {
  if (typeof value === "string") return JSON.stringify(cutAt(value, 40));
  if (value === null || typeof value !== "object") return String(value);
  return Array.isArray(value) ? "[…]" : "{…}";
}
