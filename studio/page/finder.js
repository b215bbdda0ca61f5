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

  /** Ask from the beginning, or from an offset on; what is known of there and above stands until all is answered. */
  async ask(from = 0) {
    const found = [];
    for (let next = from; ; next = found.at(-1) + 1) {
      const answer = await this.source.find(this.key, { ...this.query, from: next, limit: ASKED_AT_ONCE });
      for (const offset of answer.offsets) found.push(offset);
      if (this.stale || !answer.offsets.length || answer.offsets.length >= answer.total) break;
    }
    if (!this.stale) this.offsets = [...this.offsets.slice(0, this.place(from)), ...found];
    return this;
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
