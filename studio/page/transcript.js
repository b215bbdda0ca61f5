// The transcript of a session: all events or those that were asked for, live.

import {atMostEvery, button, el, quietly} from "./dom.js";
import {count, counted} from "./format.js";
import {copyText, notify} from "./copy.js";
import {borrowed, eventRow, waitingRow} from "./event_row.js";
import {Finder} from "./finder.js";
import {highlight} from "./highlight.js";
import {LiveView} from "./live_view.js";
import {momentOf} from "./moments.js";
import {Seams, seamLine} from "./seams.js";
import {SessionIndex} from "./session_index.js";
import {Toolbar} from "./toolbar.js";
import {unfold} from "./unfold.js";
import {VirtualList} from "./virtual_list.js";

/** @param place `source`, `router`, `key`, `live` (is the session live), `state(word)`, `moved(total)`, `gone()`, `failed(error)`. */
export class Transcript {
  constructor(place) {
    this.place = place;
    this.query = { q: "", kinds: [], only: false };
    this.listed = null; // the Finder of what is listed, null for all events
    this.matches = null; // the Finder of what was searched for
    this.at = -1;
    this.index = new SessionIndex();
    this.seams = new Seams();
    this.asked = 0; // questions under way
    this.isRefinding = false;
    this.sews = this.audits = 0; // begun so far
    this.wish = 0; // where to step once they are answered
    this.drawn = new Map();
    this.target = null;
    this.unseen = 0;
    this.about = { index: this.index, open: new Set(), raw: false, live: place.live, pending: (call) => this.pending(call), moment: (event) => momentOf(event, (offset) => this.view.at(offset)?.item), entersCall: (event) => this.entersCall(event), href: (at) => place.router.href({ key: place.key, at }), pick: (offset, only) => this.pick(offset, only), whole: place.source.embedded ? null : (offset) => this.view.whole(offset).catch(place.failed) };
    this.list = new VirtualList({ label: "Transcript", row: (index) => this.row(index), seen: (first, end) => this.seen(first, end), moved: () => this.moved() });
    this.toolbar = new Toolbar({ live: !place.source.embedded, search: (q) => this.search(q), step: (by) => this.step(by), kinds: (kinds) => this.ask({ kinds }), only: (only) => this.ask({ only }), raw: (raw) => this.setRaw(raw), follow: (on) => this.follow(on), leave: () => this.list.element.focus() });
    this.fresh = button("", () => this.follow(true), { class: "fresh", hidden: true });
    this.news = el("div", { class: "off-screen", role: "status", "aria-live": "polite" });
    this.empty = el("p", { class: "empty", hidden: true }, "Nothing here yet.");
    this.element = el("div", { class: "transcript" }, this.toolbar.element, el("div", { class: "stage" }, this.list.element, this.empty, this.fresh), this.news);
    this.announce = quietly(1500, (told) => {
      this.news.textContent = told;
    });
    this.recount = atMostEvery(1000, () => this.audit());
    this.reseam = atMostEvery(300, () => this.sew());
    this.goOn = atMostEvery(150, () => this.refind());
    this.paint = quietly(60, () => highlight(this.list.mounted.values(), this.query.q));
    this.view = new LiveView(place.source, place.key, "events", { changed: (change) => this.changed(change), filled: (from, end) => this.filled(from, end), state: place.state, gone: place.gone, failed: place.failed });
  }

  /** Show the place `at`; without one the end of a live session, the beginning of another. */
  async open(at, nextOffset) {
    const end = at === null && this.place.live;
    this.sew(); // beside the first question, so that its lines seldom come after the rows
    await this.view.open(at !== null ? at - 60 : end ? nextOffset - 100 : 0);
    this.list.layout();
    if (at !== null) this.go(at);
    else if (end) this.follow(true);
    this.audit();
  }

  /** Where one reads, for a way back; null at the end that is followed, and at an untouched beginning. */
  get here() {
    if (this.list.following || !this.list.count) return null;
    const top = this.target === null ? null : this.list.topOf(this.indexOf(this.target));
    const offset = top !== null && top > -40 && top < this.list.view ? this.target : this.offsetOf(Math.min(this.list.anchor.index, this.list.count - 1));
    return offset || this.place.live ? offset : null;
  }

  // Rows

  offsetOf(index) {
    return this.listed ? this.listed.offsets[index] : index;
  }

  indexOf(offset) {
    return this.listed ? this.listed.place(offset) : offset;
  }

  row(index) {
    const offset = this.offsetOf(index);
    const entry = this.view.at(offset);
    this.drawn.set(index, this.signature(entry));
    const row = entry ? eventRow(entry, this.about) : waitingRow(offset);
    if (offset === this.target) row.classList.add("target");
    if (entry) this.addSeams(row, entry.item);
    if (entry && offset === this.sought) unfold(row, this.query.q);
    return row;
  }

  addSeams(row, event) {
    const { before, after } = this.seamsOf(event);
    row.prepend(...[seamLine(before)].filter(Boolean));
    row.append(...[seamLine(after)].filter(Boolean));
  }

  seamsOf(event) {
    const earlier = this.view.at(event.offset - 1)?.item;
    return { before: this.seams.before(event, earlier), after: event.offset === this.total - 1 ? this.seams.after(event) : [] };
  }

  // The result may still come while its writer is the last one, and its turn goes on.
  pending(call) {
    const isLast = this.seams.fence === null || call.incarnation >= this.seams.fence;
    return this.about.live && isLast && !this.index.isOver(call);
  }

  signature(entry) {
    if (!entry) return "waiting";
    const { before, after } = this.seamsOf(entry.item);
    return [entry.cut, borrowed(entry.item, this.about), this.about.moment(entry.item), ...before, "|", ...after].join(" ");
  }

  entersCall(event) {
    if (this.listed) return true;
    const above = this.view.at(event.offset - 1)?.item;
    return above?.parentCallId !== event.parentCallId && !(above?.type === "tool-call" && above.callId === event.parentCallId);
  }

  redraw() {
    for (const index of this.list.mounted.keys()) {
      if (this.drawn.get(index) !== this.signature(this.view.at(this.offsetOf(index)))) this.list.refresh(index, index + 1);
    }
    this.paint();
  }

  seen(first, end) {
    if (this.drawn.size > 500) for (const index of this.drawn.keys()) if (!this.list.mounted.has(index)) this.drawn.delete(index);
    const wanted = [];
    for (let index = first; index < end; index += 1) wanted.push(this.offsetOf(index));
    this.view.want(wanted);
    this.paint();
  }

  moved() {
    this.toolbar.following(this.list.following);
    if (this.list.following || this.list.atEnd) this.forgetUnseen();
  }

  // What the source tells

  filled(from, end) {
    this.takeIn(from, end);
    this.redraw();
  }

  takeIn(from, end) {
    for (let offset = from; offset < end; offset += 1) {
      const entry = this.view.at(offset);
      if (entry) this.index.add(entry.item);
    }
  }

  changed({ keep, total }) {
    const first = this.total === undefined;
    const before = this.total ?? 0;
    this.total = total;
    if (keep < before) this.index.drop(keep);
    this.takeIn(keep, total);
    if (this.listed || this.matches || this.asked) this.cutFound(first ? total : keep);
    if (!this.listed) this.list.setCount(total, keep);
    this.redraw();
    this.tellEmpty();
    if (!first && (total > before || keep < before)) this.tellNews(total - keep, keep < before ? before - keep : 0);
    this.place.moved(total);
    if (!first) this.recount();
  }

  tellEmpty() {
    this.empty.hidden = this.list.count > 0;
    this.empty.textContent = this.listed ? "No match." : "Nothing here yet.";
  }

  tellNews(added, superseded) {
    if (superseded) notify(`Rewound: ${counted(superseded, "event")} superseded`);
    if (this.list.following) this.announce(`${counted(added, "new event")}, following`);
    else {
      this.unseen = superseded ? added : this.unseen + added;
      this.fresh.textContent = `${counted(this.unseen, "new event")} ↓`;
      this.fresh.hidden = !this.unseen;
    }
  }

  /** The session began to live, or no longer does. */
  setLive(live) {
    if (live === this.about.live) return;
    this.about.live = live;
    this.redraw();
  }

  /** Something moved that is no event: a claim, a checkpoint; or a rewind. */
  updated(row) {
    if (row.incarnation !== this.seams.fence || row.checkpoint !== this.seams.latest || row.generation !== this.seams.generation) this.reseam();
  }

  async sew() {
    if (this.view.closed) return; // a timer's call
    const { source, key } = this.place;
    const turn = ++this.sews;
    try {
      const told = await Promise.all([source.session(key), source.rewinds(key)]);
      if (turn !== this.sews) return; // asked again since
      this.seams.take(...told);
      this.redraw();
    } catch (error) {
      console.info(error); // the lines are an addition: what the stream says of the trouble stands at the top
    }
  }

  forgetUnseen() {
    this.unseen = 0;
    this.fresh.hidden = true;
  }

  async audit() {
    if (!this.total || this.view.closed) return; // nothing to count, or it was swept
    const turn = ++this.audits;
    const stats = await this.place.source.stats(this.place.key).catch(() => null);
    if (!stats || turn !== this.audits) return;
    this.index.audit(stats);
    this.redraw();
  }

  // Search and filter

  search(q) {
    if (q === this.query.q) return;
    this.at = -1;
    this.sought = null;
    this.ask({ q });
  }

  async ask(change) {
    const anchor = this.offsetOf(this.list.anchor.index);
    Object.assign(this.query, change);
    const { q, kinds, only } = this.query;
    const wanted = kinds.join(",");
    for (const finder of [this.listed, this.matches]) if (finder) finder.stale = true;
    this.asked += 1;
    const make = (query) => new Finder(this.place.source, this.place.key, query).ask();
    try {
      const [matches, listed] = await Promise.all([q ? make({ q, kinds: wanted }) : null, wanted && !(q && only) ? make({ kinds: wanted }) : null]);
      if (this.query.q !== q || this.query.kinds.join(",") !== wanted || this.query.only !== only) return;
      this.matches = matches;
      this.cutUnsure([matches, listed]);
      this.show(q && only ? matches : listed, anchor);
    } catch (error) {
      this.place.failed(error);
    } finally {
      this.asked -= 1;
      this.stepOnceAnswered();
    }
  }

  stepOnceAnswered() {
    if (this.asked) return;
    const by = this.wish;
    this.wish = 0;
    if (by) this.step(by);
  }

  show(listed, anchor) {
    const same = this.listed === listed;
    this.listed = listed;
    this.toolbar.tell(this.matches?.offsets.length ?? null, this.at);
    this.paint();
    if (same) return;
    this.list.setCount(listed ? listed.offsets.length : this.total, 0);
    this.tellEmpty();
    if (anchor !== undefined && !this.list.following) this.list.go(this.indexOf(anchor));
  }

  cutFound(keep) {
    this.from = Math.min(this.from ?? keep, keep);
    this.cutUnsure([this.listed, this.matches]);
    if (this.listed) this.list.setCount(this.listed.offsets.length, this.listed.offsets.length);
    this.goOn();
  }

  // What was answered may be of before a change that came meanwhile; from there on it is asked again.
  cutUnsure(finders) {
    if (this.from !== undefined) for (const finder of finders) finder?.cut(this.from);
  }

  async refind() {
    if (this.view.closed || this.from === undefined) return;
    if (this.asked || this.isRefinding) return void this.goOn(); // an older answer that comes later would undo a newer one
    const { from } = this;
    this.from = undefined;
    this.isRefinding = true;
    const known = this.listed?.offsets.length ?? 0;
    const asked = new Set([this.listed, this.matches].filter(Boolean));
    await Promise.all([...asked].map((finder) => finder.ask(from).catch(this.place.failed)));
    this.isRefinding = false;
    this.cutUnsure(asked);
    if (this.listed && asked.has(this.listed)) this.list.setCount(this.listed.offsets.length, Math.min(known, this.listed.place(from)));
    this.toolbar.tell(this.matches?.offsets.length ?? null, this.at);
    this.tellEmpty();
  }

  /** Go to the next match, or the one before. */
  step(by) {
    if (this.asked) {
      this.wish = by; // Enter right after typing: the answer is under way
      return;
    }
    const found = this.matches?.offsets;
    if (!found?.length) return;
    const here = this.offsetOf(this.current());
    if (this.at < 0) this.at = by > 0 ? this.matches.place(here) % found.length : Math.max(0, this.matches.place(here) - 1);
    else this.at = (this.at + by + found.length) % found.length;
    this.toolbar.tell(found.length, this.at);
    this.mark(found[this.at]);
    this.sought = found[this.at];
    this.list.refresh(this.indexOf(this.sought), this.indexOf(this.sought) + 1);
    this.list.go(this.indexOf(found[this.at]), 64);
  }

  // Moves

  /** Show an offset and mark it. */
  go(offset) {
    this.follow(false);
    if (offset >= this.total) notify(`No offset ${count(offset)} yet: the log ends ${this.total ? `at ${count(this.total - 1)}` : "before its first event"}`, 6000);
    this.mark(offset);
    this.list.go(this.indexOf(offset), 16);
    this.list.reveal(Math.min(this.indexOf(offset), this.list.count - 1));
  }

  mark(offset) {
    const before = this.target;
    this.target = offset;
    for (const one of [before, offset]) {
      if (one === null) continue;
      const row = this.list.mounted.get(this.indexOf(one));
      row?.classList.toggle("target", one === offset);
    }
  }

  /** What a press on an offset does: the address says it, and the clipboard holds it. */
  pick(offset, only = false) {
    this.place.router.note({ key: this.place.key, at: offset });
    if (only) this.go(offset);
    else {
      this.mark(offset);
      copyText(new URL(this.about.href(offset), location.href).href, `Link to offset ${count(offset)}`);
    }
  }

  current() {
    const focused = Number(document.activeElement?.closest?.("article")?.dataset.index ?? -1);
    return focused >= 0 && this.list.mounted.has(focused) ? focused : this.list.anchor.index;
  }

  /** Move the focus by some rows. */
  walk(by) {
    const onRow = document.activeElement?.closest?.("article");
    const next = onRow ? this.current() + by : this.current();
    if (next >= 0 && next < this.list.count) this.list.reveal(next);
    this.follow(false);
  }

  first() {
    this.follow(false);
    this.list.go(0);
    this.list.reveal(0);
  }

  last() {
    this.list.goToEnd();
    this.list.mounted.get(this.list.count - 1)?.focus({ preventScroll: true });
    this.forgetUnseen();
  }

  follow(on) {
    this.list.follow(on);
    this.toolbar.following(on);
    if (on) this.forgetUnseen();
  }

  setRaw(raw) {
    this.about.raw = raw;
    this.toolbar.raw.setAttribute("aria-pressed", String(raw));
    this.list.refresh(0, this.list.count);
  }

  /** What a key does here; whether it did anything. */
  key(name) {
    const acts = { j: () => this.walk(1), k: () => this.walk(-1), g: () => this.first(), G: () => this.last(), f: () => this.follow(!this.list.following), r: () => this.setRaw(!this.about.raw), n: () => this.step(1), N: () => this.step(-1), "/": () => this.toolbar.input.focus() };
    if (!Object.hasOwn(acts, name)) return false;
    acts[name]();
    return true;
  }

  close() {
    highlight([], "");
    this.view.close();
    this.list.close();
  }
}
