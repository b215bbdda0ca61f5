// The model history: what a provider would be sent, as it would be sent, and what had to be left out.

import {button, el, fill, quietly} from "./dom.js";
import {bytes, count, counted} from "./format.js";
import {copyText} from "./copy.js";
import {jsonText} from "./json_text.js";
import {jsonTree} from "./json_tree.js";
import {longText} from "./long_text.js";
import {visible} from "./text.js";
import {RowsPanel, offsetLink} from "./rows_panel.js";

const WHY = {
  orphans: ["result", "of no call that the log knows"],
  doubles: ["result", "of a call that was already answered"],
  blanks: ["message", "without any text, which providers refuse"],
  unknown: ["event", "of a type that this version does not know"],
};
const PLACEHOLDER = "Error: no result was recorded for this tool call";

/** The panel; see `RowsPanel`. */
export function modelPanel(place) {
  const told = el("div", { class: "diagnostics", role: "status" });
  const tell = (answer) => fill(told, diagnosed(answer));
  const again = quietly(800, () => place.source.messages(place.key, "model", 0, 1).then(tell).catch(place.failed));
  return new RowsPanel(place, { view: "model", label: "Model history", row: messageRow, head: told, opened: tell, changed: again });
}

function diagnosed(answer) {
  const dropped = Object.entries(answer.diagnostics ?? {}).filter(([, number]) => number > 0);
  const lead = el("p", null, `${counted(answer.total, "message")}, as a provider would be sent them. `, dropped.length ? "Left out:" : "Nothing had to be left out.");
  return dropped.length ? [lead, el("ul", null, dropped.map(reason))] : lead;
}

function reason([name, number]) {
  const [noun, why] = Object.hasOwn(WHY, name) ? WHY[name] : ["item", name];
  return el("li", null, el("strong", null, counted(number, noun)), ` ${why}`);
}

function messageRow(entry, index, about) {
  const message = entry.item;
  const blocks = Array.isArray(message.content) ? message.content : [];
  const waiting = message.role === "tool" && blocks.some((block) => String(block.content).startsWith(PLACEHOLDER));
  const head = el("div", { class: "message-head" }, el("span", { class: "label" }, String(message.role)), waiting ? el("span", { class: "chip open", title: "The log holds no result: this text stands for it" }, "placeholder") : null, toolId(message), el("span", { class: "spring" }), button("Copy JSON", () => copyText(jsonText(message), "Message"), { class: "quiet" }));
  const body = el("div", { class: "body" }, head, blocks.map(blockElementOf));
  if (entry.cut) body.append(el("div", { class: "cut-note" }, `Cut: ${bytes(entry.cut)} in all. `, button("Load it whole", () => about.whole(index))));
  const gutter = el("div", { class: "gutter" }, offsetLink(entry.offset, about));
  return el("article", { class: `row message of-${["system", "user", "assistant", "tool"].includes(message.role) ? message.role : "other"}${waiting ? " placeholder" : ""}`, "aria-label": `${message.role} message ${count(index + 1)}` }, gutter, body);
}

function toolId(message) {
  const id = message.tool_call_id ?? message.toolCallId;
  return typeof id === "string" ? el("span", { class: "id" }, visible(id.slice(0, 80))) : null;
}

function blockElementOf(block) {
  if (block.type === "text") return longText(block.content, "message");
  const use = block.content ?? {};
  return el("div", { class: "call" }, el("span", { class: "tool-name" }, visible(String(use.name).slice(0, 80))), " ", el("span", { class: "id" }, visible(String(use.id).slice(0, 80))), jsonTree(use.args));
}
