// Markdown as elements. The text goes in as text nodes alone; nothing is ever parsed as HTML.

import {button, el} from "./dom.js";
import {markdownBlocks} from "./markdown_blocks.js";
import {inlineMarkdown} from "./markdown_inline.js";
import {copyText} from "./copy.js";
import {diffView} from "./diff.js";
import {longText} from "./long_text.js";

const MOST_ROWS = 200; // of a table; the rest is told, and stands in the raw event

/** A text of markdown as an element. */
export function markdown(text) {
  return el("div", { class: "markdown", dir: "auto" }, markdownBlocks(text).map(blockElement));
}

function blockElement(block) {
  switch (block.kind) {
    case "heading":
      // The page's own outline has h1 to h3; what a message calls its headings goes below.
      return el("div", { class: `heading heading-${block.level}`, role: "heading", "aria-level": Math.min(9, block.level + 3) }, inlineMarkdown(block.text));
    case "code":
      return codeBlock(block.text, block.language);
    case "rule":
      return el("hr");
    case "quote":
      return el("blockquote", null, block.blocks.map(blockElement));
    case "list":
      return listElement(block);
    case "table":
      return tableElement(block);
    default:
      return el("p", { dir: "auto" }, inlineMarkdown(block.text));
  }
}

/** A block of code with its language and a button that copies it. */
export function codeBlock(text, language) {
  const body = language === "diff" || language === "patch" ? diffView(text) : longText(text, "code");
  const head = el("div", { class: "code-head" }, el("span", null, language ?? ""), button("Copy", () => copyText(text, "Code")));
  return el("div", { class: "code-block" }, head, body);
}

function listElement(list) {
  const items = list.items.map((item) => {
    const mark = item.done === null ? null : el("span", { class: "task", role: "img", "aria-label": item.done ? "done" : "to do" }, item.done ? "☑ " : "☐ ");
    return el("li", { class: mark && "task-item" }, mark, item.blocks.map((block) => tight(block, list)));
  });
  return list.ordered ? el("ol", { start: list.start === 1 ? null : list.start }, items) : el("ul", null, items);
}

function tight(block) {
  return block.kind === "paragraph" ? el("span", { class: "tight" }, inlineMarkdown(block.text)) : blockElement(block);
}

function tableElement(table) {
  const row = (cells, name) =>
    el("tr", null, table.head.map((_, column) => el(name, { class: `to-${table.align[column] ?? "left"}`, scope: name === "th" ? "col" : null }, inlineMarkdown(cells[column] ?? ""))));
  const more = table.rows.length - MOST_ROWS;
  return el(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
    el("table", null, el("thead", null, row(table.head, "th")), el("tbody", null, table.rows.slice(0, MOST_ROWS).map((cells) => row(cells, "td")))),
    more > 0 ? el("p", { class: "muted" }, `${more} more rows`) : null,
  );
}
