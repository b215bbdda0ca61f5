// Which offsets hold a text or are of some kinds: asked of the source, and gone on with as the log grows.

const ASKED_AT_ONCE = 100_000;

/** The offsets of one question, kept level with the log. */
export class Finder {
  constructor(source, key, query) {
    this.source = source;
    this.key = key;
    this.query = query;
    this.offsets = [];
    this.stale = false;
  }

  /** Ask from the beginning, or from an offset on: what stood there and above is forgotten. */
  async ask(from = 0) {
    this.offsets = this.offsets.slice(0, this.place(from));
    let next = from;
    for (;;) {
      const answer = await this.source.find(this.key, { ...this.query, from: next, limit: ASKED_AT_ONCE });
      if (this.stale) return this;
      for (const offset of answer.offsets) this.offsets.push(offset);
      const last = answer.offsets.at(-1);
      if (last === undefined || answer.offsets.length >= answer.total) return this;
      next = last + 1;
    }
  }

  /** Forget what stood at an offset and above. */
  cut(offset) {
    this.offsets = this.offsets.slice(0, this.place(offset));
  }

  /** The index of the first offset that is not below the given one. */
  place(offset) {
    let low = 0;
    let high = this.offsets.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.offsets[middle] < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
