// A view of which each item is a row: what the model history and the frames have in common.

import {el} from "./dom.js";
import {count} from "./format.js";
import {LiveView} from "./live_view.js";
import {VirtualList} from "./virtual_list.js";

/** @param place as for a transcript; `options`: `view`, `label`, `row(entry, index, about)`, `head` (an element), `opened(answer)`, `keys` (what else a key does). */
export class RowsPanel {
  constructor(place, options) {
    this.place = place;
    this.options = options;
    this.about = { href: (at) => place.router.href({ key: place.key, at }), go: (offset) => place.router.go({ key: place.key, at: offset, tab: "transcript" }), whole: place.source.embedded ? null : (index) => this.view.whole(index).catch(place.failed) };
    this.list = new VirtualList({ label: options.label, row: (index) => this.row(index), seen: (first, end) => this.view.want(span(first, end)) });
    this.empty = el("p", { class: "empty", hidden: true }, "Nothing here yet.");
    this.element = el("div", { class: "rows-panel" }, options.head, el("div", { class: "stage" }, this.list.element, this.empty));
    this.view = new LiveView(place.source, place.key, options.view, { changed: (change) => this.changed(change), filled: (from, end) => this.list.refresh(from, end), state: place.state, gone: place.gone, failed: place.failed });
  }

  async open() {
    const answer = await this.view.open(0);
    this.options.opened?.(answer);
    this.list.layout();
  }

  row(index) {
    const entry = this.view.at(index);
    return entry ? this.options.row(entry, index, this.about) : el("article", { class: "row waiting", "aria-busy": "true", "aria-label": `Item ${count(index)}, loading` }, el("div", { class: "body" }, el("div", { class: "bar" })));
  }

  changed({ keep, total, replaced }) {
    this.list.setCount(total, keep);
    for (const index of replaced) this.list.refresh(index, index + 1);
    this.empty.hidden = total > 0;
    this.options.changed?.(this);
  }

  key(name) {
    const here = Number(document.activeElement?.closest?.("article")?.dataset.index ?? this.list.anchor.index - 1);
    const acts = { j: () => this.list.reveal(Math.min(here + 1, this.list.count - 1)), k: () => this.list.reveal(Math.max(0, here - 1)), g: () => this.list.reveal(0), G: () => this.list.reveal(this.list.count - 1) };
    Object.assign(acts, this.options.keys);
    if (!Object.hasOwn(acts, name)) return false;
    acts[name]();
    return true;
  }

  close() {
    this.view.close();
    this.list.close();
  }
}

function span(first, end) {
  return Array.from({ length: end - first }, (_, at) => first + at);
}

/** A link to the event that an item comes from; `lead` stands before the number. */
export function offsetLink(offset, about, lead = "") {
  if (offset === null || offset === undefined) return null;
  return el("a", { class: "offset", href: about.href(offset), "aria-label": `Go to offset ${offset}`, click: (press) => {
    if (press.metaKey || press.ctrlKey || press.shiftKey) return;
    press.preventDefault();
    about.go(offset);
  } }, lead, count(offset));
}
