// What the page holds of a view: some of its items, by index, kept true by the changes that the server tells.
//
// Items come two ways, as answers to questions and as changes, and may overtake each other. One rule keeps them true:
// an answer fills holes only, and a change puts whatever it touches. Whatever an answer says of an untouched place
// holds at every later id, and a place that was touched since is no hole.

const CHUNK = 64;
const MOST_CHUNKS = 1200; // about 77,000 items; beyond it those that were not looked at for longest are let go

/** The items of one view of one session. */
export class Pages {
  constructor() {
    this.clear();
  }

  clear() {
    this.chunks = new Map();
    this.total = 0;
    this.id = null;
    this.generation = 0;
    this.nextOffset = 0;
    this.evicted = 0;
  }

  /** The item at an index as `{item, offset, cut}`, or undefined where it is not here. */
  at(index) {
    const number = Math.floor(index / CHUNK);
    const chunk = this.chunks.get(number);
    return chunk?.[index % CHUNK];
  }

  /** Those of `[first, end)` that are not here, as `[from, until)` ranges. */
  holes(first, end) {
    const ranges = [];
    let from = -1;
    for (let index = Math.max(0, first); index < Math.min(end, this.total); index += 1) {
      const hole = this.at(index) === undefined;
      if (hole && from < 0) from = index;
      if (!hole && from >= 0) {
        ranges.push([from, index]);
        from = -1;
      }
    }
    if (from >= 0) ranges.push([from, Math.min(end, this.total)]);
    return ranges;
  }

  /** Take an answer in; gives the range that it filled. An answer from before an eviction says nothing reliable. */
  fill(answer, evicted = this.evicted) {
    if (evicted !== this.evicted) return null;
    if (this.id === null) this.place(answer);
    const end = Math.min(answer.from + answer.items.length, this.total);
    for (let index = answer.from; index < end; index += 1) {
      if (this.at(index) === undefined) this.put(index, entryOf(answer, index, answer.from));
    }
    return [answer.from, end];
  }

  place(answer) {
    this.id = answer.id;
    this.total = answer.total;
    this.generation = answer.generation;
    this.nextOffset = answer.nextOffset;
  }

  /** Take a change in; gives how many of the first items are as they were, and which were replaced. */
  change(change) {
    if (change.keep < this.total) this.drop(change.keep);
    this.total = change.total;
    for (const [index, item, offset] of change.replaced ?? []) this.put(index, { item, offset, cut: change.cut?.[index] ?? null });
    for (let index = change.keep; index < change.total; index += 1) this.put(index, entryOf(change, index, change.keep));
    this.id = change.id;
    this.generation = change.generation;
    this.nextOffset = change.nextOffset;
    return { keep: change.keep, replaced: (change.replaced ?? []).map(([index]) => index) };
  }

  put(index, entry) {
    const number = Math.floor(index / CHUNK);
    let chunk = this.chunks.get(number);
    if (!chunk) {
      chunk = new Array(CHUNK);
      this.chunks.set(number, chunk);
    }
    chunk[index % CHUNK] = entry;
  }

  drop(keep) {
    for (const [number, chunk] of this.chunks) {
      const first = number * CHUNK;
      if (first >= keep) this.chunks.delete(number);
      else if (first + CHUNK > keep) chunk.fill(undefined, keep - first);
    }
  }

  /** Let go of what is far from `[first, end)`, where there is too much. */
  trim(first, end) {
    if (this.chunks.size <= MOST_CHUNKS) return;
    const middle = (first + end) / 2 / CHUNK;
    const far = [...this.chunks.keys()].sort((one, other) => Math.abs(other - middle) - Math.abs(one - middle));
    for (const number of far.slice(0, MOST_CHUNKS / 4)) this.chunks.delete(number);
    this.evicted += 1;
  }
}

function entryOf(answer, index, from) {
  return { item: answer.items[index - from], offset: answer.offsets?.[index - from] ?? null, cut: answer.cut?.[index] ?? null };
}
