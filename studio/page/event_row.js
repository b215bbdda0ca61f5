// An event as an article: where it stands and when it was, beside what it says.

import {button, el} from "./dom.js";
import {cutNote} from "./cut_note.js";
import {cutAt, oneLine, plain, plainJson, visible} from "./text.js";
import {bytes, clock, count, counted, dayAndClock, duration, shortCount, timeTitle} from "./format.js";
import {jsonText} from "./json_text.js";
import {jsonTree} from "./json_tree.js";
import {foldAt, longText, moreOf} from "./long_text.js";
import {markdown} from "./markdown.js";
import {ownMoment, wasIngestedLater} from "./moments.js";
import {argsShown, argsSummary, errorBody, idElement, resultBody} from "./tool_body.js";

const NAMES_OF_TYPES = {
  system: "System",
  user: "Prompt",
  assistant: "Answer",
  reasoning: "Thought",
  "tool-call": "Call",
  "tool-result": "Result",
  compaction: "Compaction",
  usage: "Usage",
  "turn-start": "Turn",
  "turn-end": "Turn end",
};

/** What people call a type of event. */
export function typeName(type) {
  return Object.hasOwn(NAMES_OF_TYPES, type) ? NAMES_OF_TYPES[type] : plain(cutAt(String(type), 40));
}

/**
 * The row of an entry `{item, cut}`.
 *
 * @param about `index` (a `SessionIndex`), `href(offset)`, `pick(offset)`, `open` (a Set of the folds that are open),
 *   `raw`, `pending(call)` (its result may still come), `moment(event)` (milliseconds), `whole(offset)`, `entersCall(event)` (the row above is not inside the same call).
 */
export function eventRow(entry, about) {
  const event = entry.item;
  const { depth, name } = about.index.nesting(event);
  const row = el("article", { class: `row of-${rowKind(event.type)}`, "data-offset": event.offset, "data-type": event.type, "aria-label": `${typeName(event.type)}, offset ${event.offset}${depth ? ", inside a call" : ""}` });
  row.append(gutter(event, about));
  const body = el("div", { class: "body" });
  if (depth) {
    row.classList.add("nested", `depth-${depth}`);
    if (about.entersCall(event)) body.append(el("span", { class: "inside" }, name ? `inside ${oneLine(name, 40)}` : "inside a call"));
  }
  body.append(about.raw ? rawBody(event) : bodyOf(event, about));
  if (entry.cut) body.append(cutNote(entry.cut, about.whole && (() => about.whole(entry.item.offset))));
  row.append(body);
  return row;
}

function rowKind(type) {
  return Object.hasOwn(NAMES_OF_TYPES, type) ? type : "other";
}

function gutter(event, about) {
  const moment = about.moment?.(event) ?? ownMoment(event);
  const iso = Math.abs(moment) < 8.64e15 ? new Date(moment).toISOString() : event.at;
  const late = wasIngestedLater(event, moment) ? `, ingested later: ${dayAndClock(event.at)} UTC` : "";
  const time = el("time", { datetime: iso, title: `${timeTitle(iso)}${late}, incarnation ${event.incarnation}` }, clock(iso));
  const link = el("a", { class: "offset", href: about.href(event.offset), title: "Link to this event", "aria-label": `Link to offset ${event.offset}`, click: (press) => {
    if (press.metaKey || press.ctrlKey || press.shiftKey) return;
    press.preventDefault();
    about.pick(event.offset);
  } }, count(event.offset));
  return el("div", { class: "gutter" }, link, time);
}

function rawBody(event) {
  return el("div", { class: "raw" }, longText(plainJson(jsonText(event)), "raw"));
}

function bodyOf(event, about) {
  switch (event.type) {
    case "user":
    case "assistant":
    case "system":
      return said(event, about);
    case "reasoning":
      return thought(event, about);
    case "tool-call":
      return called(event, about);
    case "tool-result":
      return answered(event, about);
    case "compaction":
      return compacted(event, about);
    case "usage":
      return used(event);
    case "turn-start":
      return turnBegan(event, about);
    case "turn-end":
      return turnEnded(event);
    default:
      return el("div", null, el("span", { class: "label" }, "Unknown event ", el("code", null, typeName(event.type))), jsonTree(event, false));
  }
}

function said(event, about) {
  const label = el("span", { class: "label" }, typeName(event.type));
  if (event.type !== "system") return el("div", null, label, prose(event.text));
  return el("div", null, fold(about, event, "system", el("span", null, label, " ", el("span", { class: "muted" }, oneLine(event.text, 120))), () => prose(event.text)));
}

/** Markdown of which the first part is drawn, and the rest when asked. */
export function prose(text) {
  if (!text.trim()) return el("p", { class: "muted" }, "(no text)");
  const shown = foldAt(text, 120, 6000);
  const whole = el("div", { class: "prose" }, markdown(cutAt(text, shown)));
  if (shown < text.length) whole.append(moreOf(text, shown, (from, end) => whole.insertBefore(longText(text.slice(from, end), "rest"), whole.lastChild)));
  return whole;
}

function fold(about, event, part, summary, build, open = false) {
  const name = `${event.offset} ${part}`;
  const body = el("div", { class: "fold-body" });
  const details = el("details", { class: `fold ${part}` }, el("summary", null, summary), body);
  const isOpen = about.open.has(name) || (open && !about.open.has(`${name} closed`));
  if (isOpen) {
    body.append(build());
    details.open = true;
  }
  details.addEventListener("toggle", () => {
    if (details.open && !body.childElementCount) body.append(build());
    about.open.delete(details.open ? `${name} closed` : name);
    about.open.add(details.open ? name : `${name} closed`);
  });
  return details;
}

function thought(event, about) {
  const signed = event.providerContinuation === undefined ? null : el("span", { class: "tag", title: "The provider's own record of this thought" }, `signed, ${bytes(event.providerContinuation.length)}`);
  if (!event.text?.trim()) return el("div", { class: "thought" }, el("span", { class: "label" }, "Thought"), " ", el("span", { class: "muted" }, "without text "), signed);
  const summary = el("span", null, el("span", { class: "label" }, "Thought"), " ", el("span", { class: "first-line" }, oneLine(event.text, 140)), " ", signed);
  return fold(about, event, "thought", summary, () => prose(event.text));
}

function called(event, about) {
  const { state, offset } = about.index.outcomeOf(event);
  const summary = el("span", { class: "call-line" }, el("span", { class: "tool-name" }, visible(cutAt(event.name, 80))), " ", el("span", { class: "args-line" }, argsSummary(event.args)));
  const shown = argsShown(event.args);
  return el("div", { class: "call" }, el("div", { class: "call-head" }, fold(about, event, "args", summary, () => jsonTree(event.args)), stateChip(state, offset, event, about)), shown);
}

function stateChip(state, offset, call, about) {
  if (!state) return null;
  if (state === "open") return el("span", { class: "chip open", title: "The log holds no result of this call" }, about.pending?.(call) ? "no result yet" : "no result");
  return el("a", { class: `chip ${state}`, href: about.href(offset), "aria-label": `${state}, go to the result at offset ${offset}`, click: (press) => {
    press.preventDefault();
    about.pick(offset, true);
  } }, state);
}

function answered(event, about) {
  const call = about.index.callOf(event);
  const label = el("div", { class: "result-head" }, el("span", { class: "label" }, "Result"), " ", call ? el("span", { class: "muted" }, "of ", oneLine(call.name, 60)) : idElement(event.callId), " ", event.ok ? null : el("span", { class: "chip failed" }, "failed"));
  if (about.index.isOrphan(event)) label.append(" ", el("span", { class: "chip open", title: "The log holds no call with this id" }, "without a call"));
  const error = event.error === undefined || event.ok ? null : errorBody(event.error);
  const value = error && (event.result === null || event.result === undefined || event.result === event.error) ? null : resultBody(event.result);
  return el("div", { class: event.ok ? "result" : "result bad" }, label, error, value);
}

function compacted(event, about) {
  const range = `offsets ${count(event.replacesFrom)} to ${count(event.replacesTo)}`;
  const head = el("span", null, el("span", { class: "label" }, "Compaction"), ` ${range} are a summary for the model (`, visible(oneLine(event.reason, 80)), ")");
  return event.summary ? fold(about, event, "summary", head, () => prose(event.summary)) : head;
}

function used(event) {
  const tag = (number, what) => (number ? el("span", { class: "tag", title: `${count(number)} ${what}` }, `${shortCount(number)} ${what}`) : null);
  return el("div", { class: "usage" }, el("span", { class: "label" }, "Tokens"), " ", tag(event.inputTokens, "in"), tag(event.outputTokens, "out"), tag(event.cacheReadTokens, "cached"), tag(event.cacheWriteTokens, "to cache"), tag(event.reasoningTokens, "reasoning"), event.model === undefined ? null : el("span", { class: "tag" }, visible(cutAt(event.model, 60))), event.scope ? el("span", { class: "tag" }, "running total") : null);
}

function turnBegan(event, about) {
  const end = about.index.endOf(event);
  const outcome = end ? [outcomeChip(end.outcome), " ", el("span", { class: "muted" }, turnTook(event, end, about))] : null;
  return el("h3", { class: "turn" }, event.label === undefined ? `Turn ${count(event.turn)}` : ["Turn ", visible(oneLine(event.label, 60))], " ", outcome);
}

// By one clock: a log that was ingested later has the times of the ingest.
function turnTook(start, end, about) {
  if (about.moment) return duration(about.moment(start), about.moment(end));
  if ((start.occurredAt === undefined) !== (end.occurredAt === undefined)) return "";
  return duration(start.occurredAt ?? start.at, end.occurredAt ?? end.at);
}

function turnEnded(event) {
  const name = event.label === undefined ? `Turn ${count(event.turn)}` : ["Turn ", ...visible(oneLine(event.label, 60))];
  const error = event.outcome?.error;
  return el("div", { class: "turn-end" }, name, " ended ", outcomeChip(event.outcome), error ? errorBody(`${error.kind}: ${error.message}`) : null);
}

/** The chip of a turn's outcome. */
export function outcomeChip(outcome) {
  const word = outcome === undefined ? "ended" : (outcome.error ? "error" : outcome);
  const look = word === "completed" ? "ok" : word === "error" ? "failed" : "open";
  return el("span", { class: `chip ${look}` }, plain(word).replace("_", " "));
}

function turnEndTold(event, about) {
  const end = about.index.endOf(event);
  return end && `${JSON.stringify(end)} ${turnTook(event, end, about)}`;
}

/** What of an event is drawn from other events: where it changes, the row is drawn again. */
export function borrowed(event, about) {
  const nested = about.index.nesting(event);
  const from = nested.depth ? `${nested.depth} ${nested.name} ${about.entersCall(event)}` : "";
  if (event.type === "tool-call") return `${from} ${about.index.outcomeOf(event).state} ${about.pending?.(event)}`;
  if (event.type === "tool-result") return `${from} ${about.index.callOf(event)?.name} ${about.index.isOrphan(event)}`;
  if (event.type === "turn-start") return turnEndTold(event, about);
  return from;
}

/** A row that is still to come. */
export function waitingRow(offset) {
  return el("article", { class: "row waiting", "aria-busy": "true", "aria-label": `Offset ${offset}, loading` }, el("div", { class: "gutter" }, el("span", { class: "offset" }, count(offset))), el("div", { class: "body" }, el("div", { class: "bar" }), el("div", { class: "bar short" })));
}

/** How many events, for a line under a list. */
export function eventsTold(number) {
  return counted(number, "event");
}
