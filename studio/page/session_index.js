// What the events that are here say about each other: which result answers which call, who is inside whom, how a turn
// ended. It knows what was loaded, and from the statistics of the whole log what was never answered.

const DEEPEST_NESTING = 6;

/** Calls, results and turn ends by their ids. */
export class SessionIndex {
  constructor() {
    this.calls = new Map();
    this.results = new Map();
    this.starts = new Map();
    this.ends = new Map();
    this.marks = new Map(); // of turns, by the call that they are inside of
    this.dangling = new Set();
    this.orphans = new Set();
  }

  /** Take an event in; again is no harm. */
  add(event) {
    this.addMark(event);
    if (event.type === "tool-call") note(this.calls, event.callId, { offset: event.offset, name: event.name, parent: event.parentCallId });
    else if (event.type === "tool-result") note(this.results, event.callId, { offset: event.offset, ok: event.ok });
    else if (event.type === "turn-start") note(this.starts, turnName(event), { offset: event.offset });
    else if (event.type === "turn-end") note(this.ends, turnName(event), { offset: event.offset, outcome: event.outcome, at: event.at, occurredAt: event.occurredAt });
  }

  // What a turn held is over where it ends, and where the next begins.
  addMark(event) {
    if (event.type === "turn-start" || event.type === "turn-end") note(this.marks, event.parentCallId ?? "", { offset: event.offset });
  }

  /** Whether the turn of a call is over, as far as is known here. */
  isOver(call) {
    return after(this.marks.get(call.parentCallId ?? ""), call.offset) !== null;
  }

  /** Forget what stood at `keep` and above: it was superseded. */
  drop(keep) {
    for (const known of [this.calls, this.results, this.starts, this.ends, this.marks]) {
      for (const [id, entries] of known) {
        const left = entries.filter((entry) => entry.offset < keep);
        if (left.length) known.set(id, left);
        else known.delete(id);
      }
    }
  }

  /** Take in what `stats` counted over the whole log. */
  audit(stats) {
    this.dangling = new Set((stats?.analysis?.danglingToolCalls ?? []).map((call) => call.id));
    this.orphans = new Set(stats?.analysis?.orphanToolResults ?? []);
  }

  /** How a call ended: `ok`, `failed`, `open` where the log holds no result, or nothing where it is not known here. */
  outcomeOf(call) {
    const next = after(this.calls.get(call.callId), call.offset)?.offset ?? Number.POSITIVE_INFINITY;
    const result = after(this.results.get(call.callId), call.offset);
    if (result && result.offset < next) return { state: result.ok ? "ok" : "failed", offset: result.offset };
    return { state: this.dangling.has(call.callId) ? "open" : "", offset: null };
  }

  /** The call that a result answers, if it is here: the latest before it. */
  callOf(result) {
    const calls = this.calls.get(result.callId) ?? [];
    return calls[placeOf(calls, result.offset) - 1] ?? null;
  }

  isOrphan(result) {
    return this.orphans.has(result.callId);
  }

  /** How deep an event is inside sub-agents, and the name of the call that it is inside of. */
  nesting(event) {
    let depth = 0;
    let parent = event.parentCallId;
    let name = "";
    while (parent !== undefined && depth < DEEPEST_NESTING) {
      depth += 1;
      const call = this.calls.get(parent)?.at(-1);
      if (depth === 1) name = call?.name ?? "";
      parent = call?.parent;
    }
    return { depth, name };
  }

  /** How the turn that begins with an event ended, if that is here. */
  endOf(start) {
    const name = turnName(start);
    const next = after(this.starts.get(name), start.offset)?.offset ?? Number.POSITIVE_INFINITY;
    const end = after(this.ends.get(name), start.offset);
    return end && end.offset < next ? end : null;
  }
}

function turnName(event) {
  return `${event.turn} ${event.label ?? ""} ${event.parentCallId ?? ""}`;
}

function note(known, id, entry) {
  const entries = known.get(id);
  if (!entries) known.set(id, [entry]);
  else {
    const at = placeOf(entries, entry.offset);
    if (entries[at]?.offset !== entry.offset) entries.splice(at, 0, entry);
  }
}

// The entries of an id stand in the order of the log; harnesses use an id thousands of times, so it is halved, not walked.
function placeOf(entries, offset) {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].offset < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

function after(entries, offset) {
  return entries?.[placeOf(entries, offset + 1)] ?? null;
}
