// The source of an exported page: everything is in the page, nothing changes, nothing is asked of anybody.

import {says} from "./event_texts.js";

const AT_ONCE = 2000; // events that are searched in one go
const NARROW = 640; // pixels: a drawing for a phone is in the page beside the wide one

/** What was written into the page, behind the interface of the server's answers. */
export class EmbeddedSource {
  constructor(data) {
    this.data = data;
    this.embedded = true;
    this.onUnauthorized = () => undefined;
  }

  async sessions() {
    return { sessions: [this.data.session], next: null, total: 1 };
  }

  async session() {
    return this.data.session;
  }

  has(part) {
    if (part === "frames") return this.data.frames !== undefined;
    if (part === "timeline") return Boolean(this.data.timelineSvg);
    if (part === "superseded") return Boolean(this.data.rewinds?.length);
    return part !== "model" || Boolean(this.data.model);
  }

  async messages(_key, view, from, limit) {
    const { session } = this.data;
    const items = view === "events" ? this.data.events : (this.data[view]?.items ?? []);
    const part = items.slice(from, from + limit);
    return {
      view,
      id: `${session.generation}.${session.nextOffset}`,
      generation: session.generation,
      nextOffset: session.nextOffset,
      total: items.length,
      from,
      items: part,
      offsets: view === "events" ? part.map((event) => event.offset) : (this.data[view]?.offsets?.slice(from, from + limit) ?? null),
      diagnostics: this.data[view]?.diagnostics,
      cut: view === "events" ? this.data.cut : this.data[view]?.cut,
    };
  }

  async whole(key, view, index) {
    return this.messages(key, view, index, 1);
  }

  async find(_key, { q, kinds, from, limit }) {
    const wanted = kinds ? new Set(kinds.split(",")) : null;
    const needle = (q ?? "").toLowerCase();
    const offsets = [];
    let total = 0;
    for (const [at, event] of this.data.events.entries()) {
      if (at % AT_ONCE === AT_ONCE - 1) await new Promise((done) => setTimeout(done)); // the page lives meanwhile
      if ((wanted && !wanted.has(event.type)) || (needle && !says(event, needle))) continue;
      total += 1;
      if (event.offset >= (from ?? 0) && offsets.length < (limit ?? Number.POSITIVE_INFINITY)) offsets.push(event.offset);
    }
    const { generation, nextOffset } = this.data.session;
    return { generation, nextOffset, offsets, total };
  }

  async stats() {
    return this.data.stats ?? {};
  }

  async rewinds() {
    return this.data.rewinds ?? [];
  }

  async superseded(_key, generation, from, limit) {
    const events = this.data.superseded?.[generation] ?? [];
    return { items: events.slice(from, from + limit), total: events.length, cut: this.data.supersededCut?.[generation] };
  }

  async timeline(_key, width) {
    const isNarrow = width < NARROW && this.data.timelineSvgNarrow;
    return { svg: isNarrow ? this.data.timelineSvgNarrow : this.data.timelineSvg };
  }

  changes() {
    return { close: () => undefined };
  }

  sessionChanges() {
    return { close: () => undefined };
  }
}
