// What a tool was asked and what it answered: commands as commands, edits as differences, the rest as a tree.

import {el} from "./dom.js";
import {oneLine, visible} from "./text.js";
import {diffView, editView, isDiff} from "./diff.js";
import {imageOf} from "./images.js";
import {jsonTree, preview} from "./json_tree.js";
import {longText} from "./long_text.js";

const TELLING = ["command", "cmd", "pattern", "query", "file_path", "filePath", "path", "absolute_path", "url", "description", "prompt", "name"];
const BEFORE_AND_AFTER = [["old_string", "new_string"], ["oldString", "newString"], ["old_text", "new_text"], ["oldText", "newText"]];
const SPOKEN = ["output", "stdout", "content", "text", "result", "aggregated_output"];

/** The arguments of a call in a line. */
export function argsSummary(args) {
  if (args === null || typeof args !== "object") return preview(args ?? "");
  for (const key of TELLING) {
    const value = Object.hasOwn(args, key) ? args[key] : undefined;
    if (typeof value === "string" && value) return oneLine(value, 160);
    if (Array.isArray(value) && value.every((one) => typeof one === "string")) return oneLine(value.join(" "), 160);
  }
  return preview(args);
}

/** What of the arguments is worth seeing unasked: an edit, a patch, a command of several lines. Else null. */
export function argsShown(args) {
  if (typeof args === "string") return isDiff(args) ? diffView(args) : null;
  if (args === null || typeof args !== "object") return null;
  const edits = Array.isArray(args.edits) ? args.edits.slice(0, 20) : [args];
  const drawn = edits.map(editOf).filter(Boolean);
  if (drawn.length) return el("div", null, drawn);
  for (const key of ["patch", "input", "diff"]) if (isDiff(args[key])) return diffView(args[key]);
  const command = args.command ?? args.cmd;
  return typeof command === "string" && (command.includes("\n") || command.length > 100) ? longText(command, "command") : null;
}

function editOf(args) {
  if (args === null || typeof args !== "object") return null;
  for (const [before, after] of BEFORE_AND_AFTER) {
    if (typeof args[before] === "string" && typeof args[after] === "string") return editView(args[before], args[after]);
  }
  return null;
}

/** What a tool answered. */
export function resultBody(value) {
  if (value === null || value === undefined || value === "") return el("span", { class: "muted" }, "nothing");
  if (typeof value === "string") return spoken(value);
  if (typeof value !== "object") return el("span", { class: "mono" }, String(value));
  if (Array.isArray(value)) return value.length && value.length <= 20 && value.every(isBlock) ? el("div", { class: "blocks" }, value.map(blockBody)) : jsonTree(value, value.length <= 10);
  return imageOf(value) ?? objectBody(value);
}

function spoken(text) {
  const image = imageOf(text);
  if (image) return image;
  return isDiff(text) ? diffView(text) : longText(text, "output");
}

function isBlock(block) {
  return block !== null && typeof block === "object" && (imageOf(block) !== null || (block.type === "text" && typeof block.text === "string"));
}

function blockBody(block) {
  return imageOf(block) ?? spoken(block.text);
}

function objectBody(value) {
  const key = SPOKEN.find((name) => Object.hasOwn(value, name) && typeof value[name] === "string" && value[name]);
  if (key) return el("div", null, spoken(value[key]), jsonTree(value, false));
  const blocks = Object.hasOwn(value, "content") ? value.content : null;
  if (Array.isArray(blocks) && blocks.length && blocks.length <= 20 && blocks.every(isBlock)) return el("div", null, blocks.map(blockBody), jsonTree(value, false));
  return jsonTree(value, Object.keys(value).length <= 8);
}

/** An error's text. */
export function errorBody(text) {
  return el("div", { class: "error-text" }, longText(text, "error"));
}

/** An id in a fixed pitch, cut where it is long. */
export function idElement(id) {
  return el("span", { class: "id", title: oneLine(id, 200) }, visible(id.length > 18 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id));
}
