// What a rewind superseded, beside what stands there now.

import {button, el, fill} from "./dom.js";
import {notify} from "./copy.js";
import {count, counted, dayAndClock} from "./format.js";
import {eventRow} from "./event_row.js";
import {SessionIndex} from "./session_index.js";

const COLUMN_PART = 50; // rows of a column at first, and by each press

/** The panel of superseded tails. What somebody reads stays as the session goes on, and is rewound again. */
export class SupersededPanel {
  constructor(place) {
    this.place = place;
    this.shown = null; // the generation of the rewind whose tail is read
    this.now = null;
    this.asking = Promise.resolve();
    this.select = el("select", { id: "which-rewind", change: () => this.show(Number(this.select.value)).catch((error) => this.failed(error)) });
    this.stage = el("div", { class: "beside" });
    this.head = el("div", { class: "panel-head" }, el("label", { for: "which-rewind" }, "Rewind "), this.select);
    this.element = el("div", { class: "panel scrolls", tabindex: "0", role: "region", "aria-label": "Superseded" }, this.head, this.stage);
  }

  async open(at) {
    await this.ask();
    const wanted = this.left.find((one) => one.cut === at) ?? this.left[0];
    if (wanted) await this.show(wanted.generation).catch((error) => this.failed(error));
  }

  /** Ask which rewinds there are, and offer those whose tails are there; one after the other, so that the last one asked is told last. */
  ask() {
    this.asking = this.asking.catch(() => undefined).then(() => this.askNow());
    return this.asking;
  }

  async askNow() {
    this.rewinds = (await this.place.source.rewinds(this.place.key)).toReversed();
    this.generation = this.rewinds[0]?.generation ?? 0;
    this.left = this.rewinds.filter((one) => !one.swept);
    this.head.hidden = !this.left.length;
    fill(this.select, this.left.map((one) => el("option", { value: one.generation }, `${one.generation}: ${counted(one.head - one.cut, "event")} from offset ${count(one.cut)}, ${dayAndClock(one.at)}`)));
    if (this.shown !== null) this.select.value = String(this.shown);
    else if (!this.left.length) fill(this.stage, el("p", { class: "empty" }, this.rewinds.length ? "What was superseded here was swept since." : "Nothing was ever superseded here."));
  }

  async show(generation) {
    const rewind = this.left.find((one) => one.generation === generation);
    const { source, key } = this.place;
    const about = { router: this.place.router, key, failed: (error) => this.failed(error) };
    const old = new Column(about, "Superseded", `by incarnation ${count(rewind.incarnation)}, offsets ${count(rewind.cut)} to ${count(rewind.head - 1)}`, (from, limit) => source.superseded(key, generation, from, limit), null);
    this.now = new Column(about, "What stands there now", `from offset ${count(rewind.cut)}`, (from, limit) => source.messages(key, "events", rewind.cut + from, limit), rewind.cut);
    this.shown = generation;
    this.select.value = String(generation);
    fill(this.stage, old.element, this.now.element);
    await Promise.all([old.more(), this.now.more()]);
  }

  // Nobody is told of a sweep: it is found out by asking for what was swept.
  failed(error) {
    if (error.kind !== "swept") {
      this.place.failed(error);
      return;
    }
    notify("What this rewind superseded was swept since.", 6000);
    this.shown = null;
    this.open(null).catch(this.place.failed);
  }

  updated(row) {
    this.renew(row).catch((error) => this.failed(error));
  }

  async renew(row) {
    if (row.generation === this.generation) {
      this.now?.grew(row.nextOffset);
      return;
    }
    await this.ask();
    if (this.shown === null) await this.open(null);
    else await this.now.begin(); // some of what stood there was cut
  }

  close() {}
}

// `cut` is where the column begins in the log as it stands; null for a tail, which grows no more and leads nowhere.
class Column {
  constructor(place, name, told, load, cut) {
    this.load = load;
    this.cut = cut;
    this.index = new SessionIndex();
    this.shown = 0;
    this.turn = 0;
    const linked = cut !== null;
    this.none = linked ? "Nothing was written there since." : "It was left out of this file for its size.";
    this.about = { index: this.index, open: new Set(), raw: false, entersCall: (event) => event.parentCallId !== undefined, href: (at) => place.router.href({ key: place.key, at }), pick: (at) => linked && place.router.go({ key: place.key, at }), whole: null };
    this.rows = el("div", { class: "rows-plain", role: "list" });
    this.button = button("Show more", () => this.more().catch(place.failed), { class: "more", hidden: true });
    this.element = el("section", { class: linked ? "now" : "gone", "aria-label": name }, el("h3", null, name, " ", el("span", { class: "muted" }, told)), this.rows, this.button);
  }

  /** Begin anew. */
  async begin() {
    this.shown = 0;
    await this.more();
  }

  async more() {
    this.turn += 1;
    const turn = this.turn;
    const answer = await this.load(this.shown, COLUMN_PART); // a page of the log counts from its beginning, a tail from its own
    if (turn !== this.turn) return; // asked again since
    if (!this.shown) {
      this.rows.replaceChildren();
      this.index.drop(0);
    }
    for (const event of answer.items) this.index.add(event);
    const first = answer.from ?? this.shown;
    for (const [at, event] of answer.items.entries()) {
      const row = eventRow({ item: event, cut: answer.cut?.[first + at] ?? null }, this.about);
      this.rows.append(el("div", { role: "listitem" }, row));
    }
    if (!this.shown && !answer.items.length) this.rows.append(el("p", { class: "empty" }, this.none));
    this.shown += answer.items.length;
    this.offer(answer.items.length ? answer.total - (this.cut ?? 0) : this.shown);
  }

  /** The log has so many events now: what came is offered, and does not push away what is read. */
  grew(length) {
    this.offer(length - this.cut);
  }

  offer(length) {
    this.button.hidden = length <= this.shown;
    this.button.textContent = `Show more (${count(Math.max(0, length - this.shown))} left)`;
  }
}
