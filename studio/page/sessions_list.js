// The sessions of the store, the last written first, kept as they change.

import {button, el, fill, quietly} from "./dom.js";
import {ago, count, roughSum, shortCount, timeTitle} from "./format.js";
import {oneLine, plain} from "./text.js";
import {typeName} from "./event_row.js";
import {Meanwhile} from "./meanwhile.js";

const PART = 50;
const STATES = ["live", "idle", "fenced", "retired"];

/** @param app `source`, `router`, `follow(press, place)`, `failed(error)`, `heard(row)`. */
export class SessionsList {
  constructor(app) {
    this.app = app;
    this.rows = new Map();
    this.query = { q: "", state: "" };
    this.next = null;
    this.meanwhile = new Meanwhile();
    this.paused = false;
    this.input = el("input", { type: "search", placeholder: "Find a session", "aria-label": "Find a session", autocomplete: "off", spellcheck: "false", input: quietly(150, () => this.ask({ q: this.input.value })) });
    this.select = el("select", { "aria-label": "State", change: () => this.ask({ state: this.select.value }) }, el("option", { value: "" }, "All"), STATES.map((state) => el("option", { value: state }, state)));
    this.list = el("ul", { class: "session-rows", role: "list" });
    this.more = button("Show more", () => this.load(true).catch(app.failed), { class: "more", hidden: true });
    this.told = el("p", { class: "told", role: "status" });
    this.element = el("nav", { class: "sessions", "aria-label": "Sessions" }, el("div", { class: "find-line" }, this.input, this.select), this.told, el("div", { class: "session-scroll", tabindex: "0", role: "group", "aria-label": "List of sessions" }, this.list, this.more));
    this.clock = setInterval(() => this.age(), 15_000);
  }

  async open() {
    this.paused = false;
    await this.load(false);
    if (!this.paused) this.listen();
  }

  listen() {
    this.stream?.close();
    this.stream = this.app.source.sessionChanges({ sessions: (change) => this.heard(change), state: (word, problem) => this.app.listState(word, problem), failed: this.app.failed });
  }

  pause() {
    this.paused = true;
    this.stream?.close();
    this.stream = null;
  }

  resume() {
    this.paused = false;
    if (!this.stream) this.listen();
  }

  ask(change) {
    Object.assign(this.query, change);
    this.load(false).catch(this.app.failed);
  }

  async load(more) {
    const query = { ...this.query };
    const [answer, heard] = await this.meanwhile.during(this.app.source.sessions({ ...query, after: more ? this.next : null, limit: PART }));
    if (query.q !== this.query.q || query.state !== this.query.state) return;
    if (!more) this.rows.clear();
    for (const row of answer.sessions) this.rows.set(row.key, row);
    this.next = answer.next;
    this.total = answer.total;
    for (const change of heard) this.take(change);
    this.draw();
  }

  heard(change) {
    this.meanwhile.hear(change);
    if (change.whole) this.app.heardMissing(missingFrom(change));
    for (const row of change.sessions) this.app.heard(row);
    for (const key of change.gone ?? []) this.app.heardGone(key);
    this.take(change);
    this.draw();
  }

  take(change) {
    if (change.whole) for (const row of [...this.rows.values()].filter(missingFrom(change))) this.rows.delete(row.key);
    for (const row of change.sessions) {
      if (this.fits(row)) this.rows.set(row.key, row);
      else this.rows.delete(row.key);
    }
    for (const key of change.gone ?? []) this.rows.delete(key);
    if (!this.query.q && !this.query.state && change.total !== undefined) this.total = change.total;
  }

  // A row that was not shown belongs here if it would stand among those that are.
  fits(row) {
    const { q, state } = this.query;
    if (q && !row.key.toLowerCase().includes(q.toLowerCase())) return false;
    if (state && row.state !== state) return false;
    return this.rows.has(row.key) || this.next === null || [...this.rows.values()].some((one) => one.updatedAt <= row.updatedAt);
  }

  draw() {
    const sorted = [...this.rows.values()].sort((one, other) => (other.updatedAt < one.updatedAt ? -1 : other.updatedAt > one.updatedAt ? 1 : one.key < other.key ? -1 : 1));
    const focused = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    fill(this.list, sorted.map((row) => this.item(row)));
    if (focused) [...this.list.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus({ preventScroll: true });
    this.more.hidden = this.next === null;
    const total = Math.max(this.total ?? 0, this.rows.size);
    this.told.textContent = sorted.length ? `${count(total)} session${total === 1 ? "" : "s"}` : this.query.q || this.query.state ? "No session fits." : "No session yet. incarnate run or incarnate ingest makes one.";
  }

  item(row) {
    const place = { key: row.key };
    const spent = row.tokens ? roughSum(row.tokens.input, row.tokens.output, row.tokens.cacheRead, row.tokens.cacheWrite) : 0;
    const tokens = spent ? `${shortCount(spent)} tokens` : null;
    const facts = [row.incarnation === null ? "not taken" : `incarnation ${count(row.incarnation)}`, `${shortCount(row.nextOffset)} event${row.nextOffset === 1 ? "" : "s"}`, tokens].filter(Boolean).join(" · ");
    const last = row.lastEvent ? el("span", { class: "last" }, el("span", { class: "last-type" }, typeName(row.lastEvent.type)), " ", oneLine(row.lastEvent.summary, 160)) : el("span", { class: "last muted" }, "No event yet");
    const link = el("a", { class: "session-row", href: this.app.router.href(place), "data-key": row.key, "aria-current": row.key === this.current ? "page" : null, click: (press) => this.app.follow(press, place) },
      el("span", { class: "row-head" }, el("span", { class: "row-key" }, plain(row.key)), el("time", { datetime: row.updatedAt, title: timeTitle(row.updatedAt) }, ago(row.updatedAt, Date.now()))),
      el("span", { class: "row-facts" }, el("span", { class: `state is-${row.state}` }, row.state), ` · ${facts}`),
      last);
    return el("li", null, link);
  }

  /** Mark the session that is shown. */
  mark(key) {
    this.current = key;
    for (const link of this.list.querySelectorAll("[data-key]")) {
      if (link.dataset.key === key) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  age() {
    for (const time of [...this.list.querySelectorAll("time"), ...(this.app.session?.ages() ?? [])]) time.textContent = ago(time.dateTime, Date.now());
  }
}

// Of all rows, or the last updated ones where there are more: what would stand among them is no more, or is newer.
function missingFrom(change) {
  const there = new Set(change.sessions.map((row) => row.key));
  const lowest = change.more ? change.sessions.at(-1).updatedAt : "";
  return (row) => !there.has(row.key) && row.updatedAt > lowest;
}
