// A list of which only the rows in sight exist. Rows have any height; the list keeps its place by an anchor (a row and
// how far into it the top of the view is), not by the scroll bar, because heights are guesses until a row was seen:
// the place where one reads never jumps when a guess turns out wrong, while the bar is put right when it rests.

import {el} from "./dom.js";
import {Heights} from "./heights.js";

const OVERSCAN = 480; // pixels beyond the view on each side, so that small moves find rows that are there
const TALLEST = 12_000_000; // browsers clamp elements from 17 million pixels on; beyond it the bar is scaled
const RESTS = 140; // milliseconds without a scroll event after which the bar is put right
const ROUNDS = 6; // of filling and measuring in one layout; each fills what was too short before

/**
 * @param options `label`; `row(index)` gives an element; `seen(first, end)` tells which rows are in sight;
 *   `moved()` is called when the reader scrolls, or goes to a row.
 */
export class VirtualList {
  constructor(options) {
    this.options = options;
    this.heights = new Heights(options.guess ?? 72);
    this.anchor = { index: 0, into: 0 };
    this.goal = null; // where to stay while heights become known: {index, gap} or "end", until the reader moves
    this.following = false;
    this.scrolling = false;
    this.held = null; // the bar, while a pointer drags it
    this.overscan = OVERSCAN;
    this.mounted = new Map();
    this.inner = el("div", { class: "window", role: "presentation" });
    this.spacer = el("div", { class: "spacer", role: "presentation" }, this.inner);
    this.element = el("div", { class: "rows", role: "feed", tabindex: "0", "aria-label": options.label }, this.spacer);
    this.lastTop = 0;
    this.frame = 0;
    this.resting = 0;
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.element.addEventListener("pointerdown", (press) => this.hold(press));
    this.observer = new ResizeObserver((entries) => this.resized(entries));
    this.observer.observe(this.element);
  }

  get count() {
    return this.heights.size;
  }

  get view() {
    return this.element.clientHeight;
  }

  /** The rows are `count` now, of which the first `keep` are as they were. */
  setCount(count, keep) {
    for (const index of [...this.mounted.keys()]) if (index >= keep) this.unmount(index);
    this.heights.resize(count, Math.min(keep, count));
    this.schedule();
  }

  /** Rows in `[from, end)` changed: build those in sight again. */
  refresh(from, end) {
    for (const [index, row] of this.mounted) if (index >= from && index < end) this.rebuild(index, row);
    this.schedule();
  }

  rebuild(index, row) {
    const focused = row.contains(document.activeElement);
    const next = this.build(index);
    this.observer.unobserve(row);
    row.replaceWith(next);
    this.mounted.set(index, next);
    if (focused) next.focus({ preventScroll: true });
    this.heights.set(index, 0);
  }

  /** Keep the end in sight as rows come. */
  follow(following) {
    this.following = following;
    if (following) this.schedule();
  }

  /** Bring a row into sight: at the top of the view, or as near as the ends allow. */
  go(index, gap = 0) {
    this.following = false;
    this.goal = { index: Math.max(0, Math.min(index, this.count - 1)), gap };
    this.layout();
    this.settle();
    this.options.moved?.();
  }

  /** Show the end, and stay there as its rows become known. */
  goToEnd() {
    this.goal = "end";
    this.layout();
    this.settle();
  }

  /** Bring a row into sight by the shortest way and give it the focus. */
  reveal(index) {
    const top = this.topOf(index);
    const height = this.heights.of(index);
    if (top === null || top < 0 || height > this.view) this.go(index, 8);
    else if (top + height > this.view) this.go(index, this.view - height - 8);
    // Whoever types meanwhile keeps the focus.
    if (!document.activeElement?.matches("input, select, textarea")) this.mounted.get(index)?.focus({ preventScroll: true });
  }

  /** Where a mounted row stands in the view; null where it is not mounted. */
  topOf(index) {
    const row = this.mounted.get(index);
    return row ? row.getBoundingClientRect().top - this.element.getBoundingClientRect().top : null;
  }

  get atEnd() {
    const last = this.topOf(this.count - 1);
    return last !== null && last + this.heights.of(this.count - 1) <= this.view + 4;
  }

  // Scrolling

  scrolled() {
    const top = this.element.scrollTop;
    const delta = top - this.lastTop;
    if (Math.abs(delta) < 1) return;
    this.lastTop = top;
    this.goal = null;
    this.scrolling = true;
    this.move(top, delta);
    if (delta < 0) this.following = false;
    this.options.moved?.();
    this.schedule();
    this.rest();
  }

  // A bar that is moved under the pointer that drags it loses its hold, and stays behind whoever rests on the way.
  rest() {
    clearTimeout(this.resting);
    if (!this.held) this.resting = setTimeout(() => this.settle(), RESTS);
  }

  /** A pointer takes hold of the bar; to have let go it need not be seen to. */
  hold(press) {
    if (press.target !== this.element || press.offsetX < this.element.clientWidth) return;
    this.letGo();
    const held = new AbortController();
    this.held = held;
    for (const name of ["pointerup", "pointercancel", "pointermove"]) window.addEventListener(name, (event) => name === "pointermove" && event.buttons ? undefined : this.letGo(), { signal: held.signal });
  }

  letGo() {
    this.held?.abort();
    this.held = null;
    if (this.scrolling) this.rest();
  }

  move(top, delta) {
    const most = this.element.scrollHeight - this.view;
    const leap = Math.abs(delta) > this.view * 1.5;
    this.overscan = leap ? 0 : OVERSCAN; // under a dragged bar rows come and go each frame: no more than are seen
    if (leap && top <= 0) this.anchor = { index: 0, into: 0 };
    else if (leap && top >= most - 1) this.goal = "end";
    else if (leap) this.leap(top * (this.heights.total / Math.max(1, this.spacerHeight)));
    else this.walk(delta);
  }

  leap(height) {
    const index = this.heights.at(height);
    this.anchor = { index, into: Math.min(height - this.heights.top(index), this.heights.of(index) - 1) };
  }

  walk(delta) {
    let { index, into } = this.anchor;
    into += delta;
    while (into < 0 && index > 0) into += this.heights.of(--index);
    while (index < this.count - 1 && into >= this.heights.of(index)) into -= this.heights.of(index++);
    this.anchor = { index, into };
  }

  // Layout

  schedule() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.layout();
      if (this.following) this.settle();
    });
  }

  /** Fill the view around the anchor, measure what is new, and stand it in its place. */
  layout() {
    if (!this.view) return;
    for (let round = 0; round < ROUNDS; round += 1) {
      this.clamp();
      const [first, end] = this.range();
      const added = this.mountRange(first, end);
      this.first = first;
      this.end = end;
      if (!this.measure(added)) break;
    }
    this.place();
    this.options.seen?.(this.first ?? 0, this.end ?? 0);
  }

  clamp() {
    if (this.following || this.goal === "end") this.anchor = { index: this.count, into: 0 };
    else if (this.goal) this.anchor = { index: this.goal.index, into: -this.goal.gap };
    let { index, into } = this.anchor;
    let below = -into;
    for (let at = index; at < this.count && below < this.view; at += 1) below += this.heights.of(at);
    if (below < this.view) {
      // The end of the list is in sight: it stands at the lower edge.
      index = this.count;
      into = 0;
      let left = this.view;
      while (index > 0 && left > 0) left -= this.heights.of(--index);
      into = Math.max(0, -left);
    }
    if (index === 0 && into < 0) into = 0;
    while (into < 0 && index > 0) into += this.heights.of(--index);
    this.anchor = { index, into };
  }

  range() {
    let first = this.anchor.index;
    let above = this.anchor.into;
    while (first > 0 && above < this.overscan) above += this.heights.of(--first);
    let end = this.anchor.index;
    let below = -this.anchor.into;
    while (end < this.count && below < this.view + this.overscan) below += this.heights.of(end++);
    return [first, end];
  }

  mountRange(first, end) {
    for (const index of [...this.mounted.keys()]) if (index < first || index >= end) this.unmount(index);
    const added = [];
    let before = null;
    for (let index = end - 1; index >= first; index -= 1) {
      let row = this.mounted.get(index);
      if (!row) {
        row = this.build(index);
        this.mounted.set(index, row);
        this.inner.insertBefore(row, before);
        added.push(index);
      } else if (!this.heights.known(index)) added.push(index);
      before = row;
    }
    return added;
  }

  build(index) {
    const row = this.options.row(index);
    row.setAttribute("aria-posinset", String(index + 1));
    row.setAttribute("aria-setsize", String(this.count));
    row.dataset.index = String(index);
    row.tabIndex = -1;
    this.observer.observe(row);
    return row;
  }

  unmount(index) {
    const row = this.mounted.get(index);
    this.mounted.delete(index);
    this.observer.unobserve(row);
    // A row that leaves with the focus would drop it to the body, and the keyboard would lose its place.
    if (row.contains(document.activeElement)) this.element.focus({ preventScroll: true });
    row.remove();
  }

  /** Note the heights of rows; whether one differs from what was taken for it. */
  measure(indices) {
    let wrong = false;
    for (const index of indices) {
      const height = this.mounted.get(index)?.getBoundingClientRect().height;
      if (height) wrong = this.note(index, height) || wrong;
    }
    return wrong;
  }

  note(index, height) {
    const before = this.heights.of(index);
    const fresh = !this.heights.known(index);
    if (!fresh && Math.abs(before - height) < 0.5) return false;
    this.heights.set(index, height);
    // A row that was entered from below is entered from below whatever its height turns out to be.
    if (fresh && !this.goal && index === this.anchor.index && this.anchor.into > 0) this.anchor.into += height - before;
    return Math.abs(before - height) >= 0.5;
  }

  place() {
    // While the reader scrolls the bar's range stays as it is: under a dragged thumb it would move the end away.
    if (!this.scrolling) {
      this.spacerHeight = Math.max(Math.min(this.heights.total, TALLEST), this.view);
      this.spacer.style.height = `${this.spacerHeight}px`;
    }
    let above = this.anchor.into;
    for (let index = this.first ?? 0; index < this.anchor.index; index += 1) above += this.heights.of(index);
    this.inner.style.transform = `translateY(${Math.round(this.element.scrollTop - above)}px)`;
    for (const row of this.mounted.values()) {
      if (row.getAttribute("aria-setsize") !== String(this.count)) row.setAttribute("aria-setsize", String(this.count));
    }
  }

  /** Put the scroll bar where the anchor says. */
  settle() {
    if (!this.view) return;
    this.scrolling = false;
    if (!this.overscan) this.schedule();
    this.overscan = OVERSCAN;
    this.place();
    const most = this.spacerHeight - this.view;
    const real = this.heights.top(this.anchor.index) + this.anchor.into;
    const range = this.heights.total - this.view;
    const top = range > 0 ? Math.round((real / range) * most) : 0;
    this.element.scrollTop = Math.min(top, most);
    this.lastTop = this.element.scrollTop;
    this.place();
  }

  resized(entries) {
    let wrong = false;
    for (const entry of entries) {
      const index = Number(entry.target.dataset.index ?? -1);
      if (entry.target === this.element) wrong = true;
      else if (this.mounted.get(index) === entry.target) wrong = this.resizedRow(index, entry.target) || wrong;
    }
    if (wrong) this.schedule();
  }

  resizedRow(index, row) {
    const height = row.getBoundingClientRect().height;
    return height > 0 && this.note(index, height);
  }

  /** Let go of what watches. */
  close() {
    this.held?.abort();
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.resting);
    this.frame = -1; // nothing is scheduled any more
  }
}
