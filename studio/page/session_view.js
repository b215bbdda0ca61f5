// One session: who it is, how it stands, and the tabs that show it.

import {button, el, fill, quietly} from "./dom.js";
import {ago, count, counted, dayAndClock, roughSum, shortCount, timeTitle} from "./format.js";
import {copyText} from "./copy.js";
import {plain} from "./text.js";
import {framesPanel} from "./frames_panel.js";
import {HistoryPanel} from "./history_panel.js";
import {Meanwhile} from "./meanwhile.js";
import {modelPanel} from "./model_panel.js";
import {SupersededPanel} from "./superseded_panel.js";
import {Tabs} from "./tabs.js";
import {TimelinePanel} from "./timeline_panel.js";
import {Transcript} from "./transcript.js";

const TABS = [["transcript", "Transcript"], ["timeline", "Timeline"], ["history", "History"], ["superseded", "Superseded"], ["model", "Model"], ["frames", "Frames"]];

// A claim and a checkpoint move a session without an event; its state stands in the head alone.
const MOVES = ["nextOffset", "generation", "incarnation", "checkpoint"];

/** @param app `source`, `router`, `state(word)`, `failed(error)`, `back()`. */
export class SessionView {
  constructor(app, key) {
    this.app = app;
    this.key = key;
    this.panel = null;
    this.paused = false;
    this.turns = 0; // tabs begun so far
    this.meanwhile = new Meanwhile();
    this.title = el("h2", { class: "session-key", tabindex: "-1" }, plain(key));
    this.facts = el("div", { class: "facts" });
    const names = TABS.filter(([id]) => !app.source.embedded || app.source.has(id));
    this.tabs = new Tabs(names, (tab) => this.choose(tab));
    this.place = null; // where the transcript was left
    const back = app.source.embedded ? null : el("a", { class: "back", href: "/", "aria-label": "All sessions", click: (press) => app.follow(press, { key: null }) }, "‹");
    this.head = el("div", { class: "session-head" }, el("div", { class: "title-line" }, back, this.title, button("Copy key", () => copyText(key, "Key"), { class: "quiet" })), this.facts);
    this.element = el("div", { class: "session" }, this.head, this.tabs.element, this.tabs.panel);
    this.refresh = quietly(1000, () => this.load().catch(() => undefined));
  }

  async load() {
    const [row, heard] = await this.meanwhile.during(this.app.source.session(this.key));
    if (!this.isGone) this.updated(Object.assign(row, ...heard));
  }

  /** Ask whether it is still there. */
  check() {
    this.load().catch((error) => error.status === 404 && this.gone());
  }

  /** Go to a tab; to the transcript where it was left. */
  choose(tab) {
    if (this.isGone || (this.panel && tab === this.tabs.selected)) return;
    this.leave();
    this.app.router.go({ key: this.key, tab, at: tab === "transcript" ? this.place : null });
  }

  leave() {
    if (this.panel && this.tabs.selected === "transcript") this.place = this.panel.here;
  }

  /** Show what a row says of the session. */
  tell(row) {
    this.row = row;
    const tokens = row.tokens;
    fill(
      this.facts,
      this.state(row),
      fact("incarnation", row.incarnation === null ? "none" : count(row.incarnation)),
      fact("events", count(row.nextOffset)),
      row.generation ? fact("rewound", counted(row.generation, "time")) : null,
      tokens && roughSum(tokens.input, tokens.output) ? fact("tokens", `${shortCount(roughSum(tokens.input, tokens.cacheRead, tokens.cacheWrite))} in, ${shortCount(tokens.output)} out`) : null,
      this.age(row),
      el("span", { class: "fact", title: "Every time on this page; a time's title has it by your own clock too" }, "times ", el("b", null, "UTC")),
    );
    document.title = `${plain(this.key)} · incarnate studio`;
  }

  // A file that was exported is of one moment: nothing in it lives, nor grows older.
  state(row) {
    const { embedded, data } = this.app.source;
    if (!embedded) return el("span", { class: `state is-${row.state}` }, row.state);
    const when = el("time", { datetime: data.exportedAt, title: timeTitle(data.exportedAt) }, dayAndClock(data.exportedAt));
    return [el("span", { class: "fact" }, "exported ", el("b", null, when)), el("span", { class: "state" }, `${row.state} then`), leftOut(data)];
  }

  age(row) {
    const told = this.app.source.embedded ? dayAndClock(row.updatedAt) : ago(row.updatedAt, Date.now());
    return el("span", { class: "fact", title: timeTitle(row.updatedAt) }, "updated ", el("time", { datetime: row.updatedAt }, told));
  }

  /** What tells how long ago something was. */
  ages() {
    return this.facts.querySelectorAll("time");
  }

  /** Show a tab, at a place of it. */
  async show(tab, at) {
    if (this.isGone) return;
    const known = this.tabs.names.some(([id]) => id === tab) ? tab : "transcript";
    if (this.panel && this.tabs.selected === known && known === "transcript" && at !== null) {
      const { panel } = this;
      await this.opening; // the log may be on its way to another place of it
      if (panel === this.panel) panel.go(at);
      return;
    }
    if (this.panel && this.tabs.selected === known && at === null) return;
    const turn = ++this.turns;
    try {
      await this.begin(known, at, turn);
    } catch (error) {
      if (this.row && error.kind === "unknown-session") {
        this.gone();
        return;
      }
      if (turn !== this.turns) return; // another tab is shown since
      this.close(); // so that it is tried again as a whole
      fill(this.tabs.panel, el("p", { class: "empty" }, "This could not be loaded."));
      throw error;
    }
  }

  async begin(tab, at, turn) {
    if (!this.row) await this.load();
    if (this.closed || turn !== this.turns) return;
    this.panel?.close();
    this.tabs.select(tab);
    this.panel = this.made(tab);
    this.app.stateOf(this.panel);
    this.tabs.panel.replaceChildren(this.panel.element);
    if (this.paused) this.panel.view?.pause();
    this.opening = this.panel.open(at, this.row.nextOffset);
    await this.opening;
  }

  made(tab) {
    const { app, key } = this;
    const place = { source: app.source, router: app.router, key, live: this.row.state === "live", state: app.state, failed: (error) => this.failed(error), gone: () => this.gone(), moved: (total) => this.moved(total) };
    const makers = { transcript: () => new Transcript(place), timeline: () => new TimelinePanel(place), history: () => new HistoryPanel(place), superseded: () => new SupersededPanel(place), model: () => modelPanel(place), frames: () => framesPanel(place) };
    return makers[tab]();
  }

  failed(error) {
    if (error.kind === "unknown-session") this.gone(); // an answer may come before the stream tells it
    else this.app.failed(error);
  }

  moved(total) {
    // An empty log may be one that was swept: the list will say so.
    if (this.row && total !== this.row.nextOffset && total) this.refresh();
  }

  /** The list heard something new of this session. */
  heard(row) {
    this.meanwhile.hear(row);
    if (this.row) this.updated(row);
  }

  updated(row) {
    const moved = this.row && MOVES.some((name) => row[name] !== this.row[name]);
    this.tell({ ...this.row, ...row });
    this.panel?.setLive?.(row.state === "live");
    if (moved) this.panel?.updated?.(row);
  }

  gone() {
    if (this.isGone) return;
    this.isGone = true;
    this.panel?.close();
    this.panel = null;
    this.app.state("");
    fill(this.tabs.panel, el("p", { class: "empty", role: "status" }, "This session is no longer in the store: it was retired and swept."));
  }

  pause() {
    this.paused = true;
    this.panel?.view?.pause();
  }

  resume() {
    this.paused = false;
    this.panel?.view?.resume();
  }

  close() {
    this.closed = true;
    this.panel?.close();
    this.panel = null;
  }
}

function leftOut(data) {
  const missing = [["model", "model history"], ["frames", "frames"]].filter(([part]) => !data[part]).map(([, name]) => name);
  if (!missing.length) return null;
  return el("span", { class: "fact", title: "incarnate studio shows them over the store" }, `without ${missing.join(" and ")}`);
}

function fact(name, value) {
  return el("span", { class: "fact" }, `${name} `, el("b", null, value));
}
