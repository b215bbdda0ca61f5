// The frames that a streaming client would have seen.

import {el} from "./dom.js";
import {cutNote} from "./cut_note.js";
import {count} from "./format.js";
import {jsonTree} from "./json_tree.js";
import {longText} from "./long_text.js";
import {plain} from "./text.js";
import {RowsPanel, offsetLink} from "./rows_panel.js";

/** The panel; see `RowsPanel`. */
export function framesPanel(place) {
  const head = el("div", { class: "diagnostics" }, el("p", null, "What a streaming client was sent, frame by frame. The turn of a frame counts the turns begun so far, from 1, whatever they are called on the other tabs."));
  return new RowsPanel(place, { view: "frames", label: "Frames", row: frameRow, head });
}

function frameRow(entry, index, about) {
  const { event, data } = entry.item;
  const delta = data.payload?.delta;
  const body = typeof delta === "string" ? longText(delta, "delta") : jsonTree(data.payload);
  const head = el("div", { class: "message-head" }, el("span", { class: "label" }, plain(String(event))), el("span", { class: "tag" }, `turn ${data.turn}`), el("span", { class: "tag" }, `seq ${data.seq}`));
  return el("article", { class: "row frame", "aria-label": `Frame ${count(index)}, ${plain(String(event))}` }, el("div", { class: "gutter" }, offsetLink(entry.offset, about)), el("div", { class: "body" }, head, body, entry.cut ? cutNote(entry.cut, about.whole && (() => about.whole(index))) : null));
}
