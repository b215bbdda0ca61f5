// When an event was: the harness's own time where it told one, so that a log that was ingested later lies where it
// happened. An event without one lies as long after the one before it as the log says, and the start of a turn as long
// before the one after it: the timeline's rule, kept to the events that are here.

const REACH = 200; // events looked at on each side for one that tells its time
const MOMENT = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?$/;
const INGESTED_LATER = 60_000; // milliseconds between the two times from which on it is worth a word

/** The milliseconds of an event in which `eventAt(offset)` gives its neighbours, as far as they are here. */
export function momentOf(event, eventAt) {
  const told = harnessTold(event);
  if (told !== null) return told;
  const before = fromBefore(event, eventAt);
  if (!before.mayLookAhead) return before.moment;
  const after = fromAfter(event, eventAt);
  if (after === null) return before.moment ?? Date.parse(event.at);
  return before.moment === null ? after : Math.max(before.moment, after);
}

/** The milliseconds of an event by itself. */
export function ownMoment(event) {
  return harnessTold(event) ?? Date.parse(event.at);
}

/** Whether the log says a much later time: the event was ingested after it happened. */
export function wasIngestedLater(event, moment) {
  return Math.abs(Date.parse(event.at) - moment) > INGESTED_LATER;
}

function harnessTold(event) {
  const [whole, day, time, zone] = MOMENT.exec(event.occurredAt ?? "") ?? [];
  const moment = whole === undefined ? Number.NaN : Date.parse(`${day}T${time}${zone ?? "Z"}`);
  return Number.isNaN(moment) ? null : moment;
}

function fromBefore(event, eventAt) {
  let passed = 0;
  let mayLookAhead = event.type === "turn-start";
  let later = event;
  for (let offset = event.offset - 1; offset >= Math.max(0, event.offset - REACH); offset -= 1) {
    const earlier = eventAt(offset);
    if (!earlier) break;
    passed += Math.max(0, Date.parse(later.at) - Date.parse(earlier.at));
    const told = harnessTold(earlier);
    if (told !== null) return { moment: told + passed, mayLookAhead };
    mayLookAhead ||= earlier.type === "turn-start";
    later = earlier;
  }
  return { moment: null, mayLookAhead: true };
}

function fromAfter(event, eventAt) {
  for (let offset = event.offset + 1; offset <= event.offset + REACH; offset += 1) {
    const later = eventAt(offset);
    if (!later) return null;
    const told = harnessTold(later);
    if (told !== null) return told - (Date.parse(later.at) - Date.parse(event.at));
  }
  return null;
}
