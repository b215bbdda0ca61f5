// What happened to a log between two of its events: an incarnation took over, a checkpoint was made, a rewind cut.

import {el} from "./dom.js";
import {counted} from "./format.js";
import {plain} from "./text.js";

/** The seams of one session, by the offset that they stand before. */
export class Seams {
  constructor() {
    this.saved = new Map();
    this.cuts = new Map();
    this.fence = null;
    this.latest = null;
    this.generation = 0;
  }

  /** Take in what the source tells of a session and of its rewinds. */
  take(session, rewinds) {
    this.fence = session.incarnation;
    this.latest = session.checkpoint;
    this.generation = session.generation;
    this.saved = new Map((session.checkpoints ?? []).map((one) => [one.offset, checkpointWords(one)]));
    this.cuts = new Map();
    let lowest = session.nextOffset; // what a later rewind cut off below it is no more
    for (const one of rewinds.toReversed()) {
      lowest = Math.min(lowest, one.cut);
      const before = this.cuts.get(lowest);
      this.cuts.set(lowest, { times: (before?.times ?? 0) + 1, events: (before?.events ?? 0) + one.head - one.cut });
    }
  }

  /** The words before an event, given the event before it where that is here. */
  before(event, earlier) {
    const words = this.at(event.offset);
    if (earlier && earlier.incarnation !== event.incarnation) words.push(`Incarnation ${event.incarnation} took over`);
    return words;
  }

  /** The words after the last event. */
  after(last) {
    const words = this.at(last.offset + 1);
    if (this.fence !== null && this.fence > last.incarnation) words.push(`Incarnation ${this.fence} took over, and has written nothing yet`);
    return words;
  }

  at(offset) {
    const cut = this.cuts.get(offset);
    const rewound = cut ? `Rewound ${cut.times > 1 ? `${counted(cut.times, "time")} ` : ""}to here: ${counted(cut.events, "event")} superseded` : null;
    return [this.saved.get(offset), rewound].filter(Boolean);
  }
}

function checkpointWords({ commitSha }) {
  return /\w/.test(commitSha) ? `Checkpoint ${plain(commitSha.slice(0, 12))}` : "Checkpoint"; // "-": of no commit
}

/** A line with words on it; nothing where there are none. */
export function seamLine(words) {
  return words.length ? el("p", { class: "seam" }, el("span", null, words.join(" · "))) : null;
}
