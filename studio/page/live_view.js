// A view that keeps itself: it asks for what is in sight, listens to what changes, and tells the list.

import {Pages} from "./pages.js";

const MOST = 200; // items of a question
const MARGIN = 40; // asked for beyond what is in sight, where it has to be asked anyway
const AGAIN = 800; // milliseconds before a failed question is asked again

/**
 * One view of one session.
 *
 * @param hooks `changed({keep, total, replaced})`, `filled(from, end)`, `state(word)`, `gone()`, `failed(error)`.
 */
export class LiveView {
  constructor(source, key, view, hooks) {
    this.source = source;
    this.key = key;
    this.view = view;
    this.hooks = hooks;
    this.pages = new Pages();
    this.wish = [];
    this.asking = false;
    this.closed = false;
    this.paused = false;
    this.stream = null;
  }

  /** Ask for the items around `from` and listen from there on. */
  async open(from) {
    const answer = await this.source.messages(this.key, this.view, Math.max(0, from), MOST);
    if (this.closed) return answer;
    this.pages.fill(answer);
    this.hooks.changed({ keep: 0, total: this.pages.total, replaced: [] });
    if (!this.paused) this.listen();
    return answer;
  }

  listen() {
    this.stream?.close();
    this.stream = this.source.changes(this.key, this.view, () => this.pages.id, {
      change: (change) => this.take(change),
      state: (word, problem) => this.hooks.state(word, problem),
      gone: () => this.hooks.gone(),
      failed: (error) => this.hooks.failed(error),
    });
  }

  /** Stop listening, for as long as nobody looks. */
  pause() {
    this.paused = true;
    this.stream?.close();
    this.stream = null;
  }

  resume() {
    this.paused = false;
    if (!this.stream && !this.closed && this.pages.id !== null) this.listen();
  }

  take(change) {
    if (this.closed) return;
    const { keep, replaced } = this.pages.change(change);
    this.pages.trim(...this.sight());
    this.hooks.changed({ keep, total: this.pages.total, replaced });
    this.ask();
  }

  at(index) {
    return this.pages.at(index);
  }

  /** What is in sight now: indices, in order. What of it is missing is asked for, the latest wish alone. */
  want(indices) {
    this.wish = indices;
    this.ask();
  }

  sight() {
    return this.wish.length ? [this.wish[0], this.wish[this.wish.length - 1]] : [this.pages.total, this.pages.total];
  }

  async ask() {
    if (this.asking || this.closed) return;
    const [from, end] = this.next();
    if (from === end) return;
    this.asking = true;
    try {
      const { evicted } = this.pages;
      const answer = await this.source.messages(this.key, this.view, from, end - from);
      if (this.closed) return;
      const filled = this.pages.fill(answer, evicted);
      this.pages.trim(from, end);
      if (filled) this.hooks.filled(...filled);
    } catch (error) {
      this.hooks.failed(error);
      await new Promise((done) => setTimeout(done, AGAIN));
    } finally {
      this.asking = false;
    }
    this.ask();
  }

  // The first range to ask for: the holes of the wish, joined where they are near each other, widened a little.
  next() {
    const missing = this.wish.filter((index) => index < this.pages.total && this.pages.at(index) === undefined);
    if (!missing.length) return [0, 0];
    const first = missing[0];
    let last = first;
    for (const index of missing) if (index - last < MARGIN && index - first < MOST - MARGIN) last = index;
    const [from, end] = [Math.max(0, first - MARGIN), Math.min(this.pages.total, last + 1 + MARGIN)];
    const [hole] = this.pages.holes(from, end).filter(([, until]) => until > first);
    return [hole[0], Math.min(hole[1], hole[0] + MOST)];
  }

  /** The whole of an item that was cut for its size. */
  async whole(index) {
    const answer = await this.source.whole(this.key, this.view, index);
    if (answer.items.length && answer.generation === this.pages.generation && this.pages.at(index)) {
      this.pages.put(index, { item: answer.items[0], offset: answer.offsets?.[0] ?? null, cut: null });
      this.hooks.filled(index, index + 1);
    }
  }

  close() {
    this.closed = true;
    this.stream?.close();
  }
}
