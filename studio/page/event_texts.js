// What is said in an event, for a search: as the server finds it, and not the names of its fields.

import {jsonText} from "./json_text.js";

/** Whether an event holds a text that is in small letters. */
export function says(event, needle) {
  return textsOf(event).some((text) => text.toLowerCase().includes(needle));
}

function textsOf(event) {
  switch (event.type) {
    case "user":
    case "assistant":
    case "system":
    case "reasoning":
      return [event.text ?? ""];
    case "tool-call":
      return [event.name, ...stringsIn(event.args)];
    case "tool-result":
      return [...stringsIn(event.result), event.error ?? ""];
    case "compaction":
      return [event.reason, event.summary ?? ""];
    case "usage":
      return [event.model ?? ""];
    case "turn-end":
      return event.outcome?.error ? [`${event.outcome.error.kind}: ${event.outcome.error.message}`] : [];
    case "turn-start":
      return [];
    default:
      return [jsonText(withoutPlace(event))];
  }
}

function withoutPlace({ offset: _offset, incarnation: _incarnation, at: _at, ...event }) {
  return event;
}

function stringsIn(value) {
  if (typeof value === "string") return [value];
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap(stringsIn);
  if (typeof value === "object") return Object.entries(value).flatMap(([name, item]) => [name, ...stringsIn(item)]);
  return [String(value)];
}
