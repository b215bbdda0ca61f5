// The model history: what a provider would be sent, as it would be sent, and what had to be left out.

import {button, el, fill, quietly} from "./dom.js";
import {count, counted} from "./format.js";
import {copyText, notify} from "./copy.js";
import {cutNote} from "./cut_note.js";
import {jsonText, parseJson} from "./json_text.js";
import {jsonTree} from "./json_tree.js";
import {longText} from "./long_text.js";
import {visible} from "./text.js";
import {resultBody} from "./tool_body.js";
import {RowsPanel, offsetLink} from "./rows_panel.js";

const WHY = {
  orphans: ["result", "of no call that the log knows"],
  doubles: ["result", "of a call that was already answered"],
  blanks: ["message", "without any text, which providers refuse"],
  unknown: ["event", "of a type that this version does not know"],
};
const RESULT_PART = 500; // events looked through at once for a result
const RESULT_PARTS = 10;
const PLACEHOLDER = "Error: no result was recorded for this tool call";

/** The panel; see `RowsPanel`. */
export function modelPanel(place) {
  const told = el("div", { role: "status" });
  const exact = button("Exact", () => setExact(exact.getAttribute("aria-pressed") !== "true"), { class: "toggle", "aria-pressed": "false", title: "Results to the letter, as the JSON that a provider is sent (r)" });
  const setExact = (on) => {
    exact.setAttribute("aria-pressed", String(on));
    panel.about.exact = on;
    panel.list.refresh(0, panel.list.count);
  };
  const tell = (answer) => fill(told, diagnosed(answer));
  let asked = 0;
  const again = quietly(800, () => {
    const turn = ++asked;
    place.source.messages(place.key, "model", 0, 1).then((answer) => turn === asked && tell(answer)).catch(place.failed); // the last one asked is told
  });
  const head = el("div", { class: "diagnostics with-switch" }, told, exact);
  const panel = new RowsPanel(place, { view: "model", label: "Model history", row: messageRow, head, opened: tell, changed: again, keys: { r: () => exact.click() } });
  panel.about.toResult = (message, offset) => goToResult(place, message, offset).catch(place.failed);
  return panel;
}

// A result stands where its call stands: providers want it there. Its own place in the log is looked for.
async function goToResult(place, message, offset) {
  let from = offset ?? 0;
  for (let part = 0; part < RESULT_PARTS; part += 1) {
    const answer = await place.source.messages(place.key, "events", from, RESULT_PART);
    const at = answer.items.findIndex((event) => event.type === "tool-result" && event.callId === message.tool_call_id);
    if (at >= 0) {
      place.router.go({ key: place.key, at: from + at });
      return;
    }
    from += answer.items.length;
    if (!answer.items.length) break;
  }
  notify(`Its result is not among the ${count(from - (offset ?? 0))} events after the call.`, 6000);
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
  const head = el("div", { class: "message-head" }, el("span", { class: "label" }, String(message.role)), waiting ? el("span", { class: "chip open", title: "The log holds no result: this text stands for it" }, "placeholder") : null, toolId(message), message.role === "tool" && !waiting ? button("Go to the result", () => about.toResult(message, entry.offset), { class: "quiet" }) : null, el("span", { class: "spring" }), button("Copy JSON", () => copyText(jsonText(message), "Message"), { class: "quiet" }));
  const body = el("div", { class: "body" }, head, blocks.map((block) => blockElementOf(block, message.role === "tool" && !about.exact && !waiting)));
  if (entry.cut) body.append(cutNote(entry.cut, about.whole && (() => about.whole(index))));
  const gutter = el("div", { class: "gutter" }, offsetLink(entry.offset, about, message.role === "tool" ? "call " : ""));
  return el("article", { class: `row message of-${["system", "user", "assistant", "tool"].includes(message.role) ? message.role : "other"}${waiting ? " placeholder" : ""}`, "aria-label": `${message.role} message ${count(index + 1)}` }, gutter, body);
}

function toolId(message) {
  const id = message.tool_call_id ?? message.toolCallId;
  return typeof id === "string" ? el("span", { class: "id" }, visible(id.slice(0, 80))) : null;
}

function blockElementOf(block, isResult) {
  if (block.type === "text") return isResult ? resultText(block.content) : longText(block.content, "message");
  const use = block.content ?? {};
  return el("div", { class: "call" }, el("span", { class: "tool-name" }, visible(String(use.name).slice(0, 80))), " ", el("span", { class: "id" }, visible(String(use.id).slice(0, 80))), jsonTree(use.args));
}

// A result is sent as JSON: a text as one line of it. Read, it is the text; to the letter, it is behind "Exact".
function resultText(text) {
  try {
    return resultBody(parseJson(text));
  } catch {
    return longText(text, "message"); // an error's words, or JSON that was cut for its size
  }
}
