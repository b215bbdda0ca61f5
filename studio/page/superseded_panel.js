// What a rewind superseded, beside what stands there now.

import {button, el, fill} from "./dom.js";
import {count, counted, dayAndClock} from "./format.js";
import {eventRow} from "./event_row.js";
import {SessionIndex} from "./session_index.js";

const COLUMN_PART = 50; // rows of a column at first, and by each press

/** The panel of superseded tails. */
export class SupersededPanel {
  constructor(place) {
    this.place = place;
    this.select = el("select", { id: "which-rewind", change: () => this.show(Number(this.select.value)).catch(place.failed) });
    this.stage = el("div", { class: "beside" });
    this.head = el("div", { class: "panel-head" }, el("label", { for: "which-rewind" }, "Rewind "), this.select);
    this.element = el("div", { class: "panel scrolls", tabindex: "0", role: "region", "aria-label": "Superseded" }, this.head, this.stage);
  }

  async open(at) {
    this.rewinds = (await this.place.source.rewinds(this.place.key)).toReversed();
    this.generation = this.rewinds[0]?.generation ?? 0;
    const left = this.rewinds.filter((one) => !one.swept);
    this.head.hidden = !left.length;
    if (!left.length) {
      fill(this.stage, el("p", { class: "empty" }, this.rewinds.length ? "What was superseded here was swept since." : "Nothing was ever superseded here."));
      return;
    }
    fill(this.select, left.map((one) => el("option", { value: one.generation }, `${one.generation}: ${counted(one.head - one.cut, "event")} from offset ${count(one.cut)}, ${dayAndClock(one.at)}`)));
    const wanted = left.find((one) => one.cut === at) ?? left[0];
    this.select.value = String(wanted.generation);
    await this.show(wanted.generation);
  }

  async show(generation) {
    const rewind = this.rewinds.find((one) => one.generation === generation);
    const { source, key } = this.place;
    const old = new Column(this.place, "Superseded", `by incarnation ${count(rewind.incarnation)}, offsets ${count(rewind.cut)} to ${count(rewind.head - 1)}`, (from, limit) => source.superseded(key, generation, from, limit), false);
    const now = new Column(this.place, "What stands there now", `from offset ${count(rewind.cut)}`, (from, limit) => source.messages(key, "events", rewind.cut + from, limit), true);
    fill(this.stage, old.element, now.element);
    await Promise.all([old.more(), now.more()]);
  }

  updated(row) {
    if (row.generation !== this.generation) this.open(null).catch(this.place.failed);
  }

  close() {}
}

class Column {
  constructor(place, name, told, load, linked) {
    this.load = load;
    this.index = new SessionIndex();
    this.shown = 0;
    this.none = linked ? "Nothing was written there since." : "It was left out of this file for its size.";
    this.about = { index: this.index, open: new Set(), raw: false, entersCall: (event) => event.parentCallId !== undefined, href: (at) => place.router.href({ key: place.key, at }), pick: (at) => linked && place.router.go({ key: place.key, at }), whole: null };
    this.rows = el("div", { class: "rows-plain", role: "list" });
    this.button = button("Show more", () => this.more().catch(place.failed), { class: "more", hidden: true });
    this.element = el("section", { class: linked ? "now" : "gone", "aria-label": name }, el("h3", null, name, " ", el("span", { class: "muted" }, told)), this.rows, this.button);
  }

  async more() {
    const answer = await this.load(this.shown, COLUMN_PART); // a page of the log counts from its beginning, a tail from its own
    for (const event of answer.items) this.index.add(event);
    const first = answer.from ?? this.shown;
    for (const [at, event] of answer.items.entries()) {
      const row = eventRow({ item: event, cut: answer.cut?.[first + at] ?? null }, this.about);
      this.rows.append(el("div", { role: "listitem" }, row));
    }
    if (!this.shown && !answer.items.length) this.rows.append(el("p", { class: "empty" }, this.none));
    const left = answer.total - (answer.view === "events" ? answer.from : this.shown) - answer.items.length;
    this.shown += answer.items.length;
    this.button.hidden = left <= 0 || !answer.items.length;
    this.button.textContent = `Show more (${count(Math.max(0, left))} left)`;
  }
}
