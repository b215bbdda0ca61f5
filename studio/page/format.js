// Numbers, sizes and times as people read them.

const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
// One zone on the whole page, that of the drawing and of the log itself; the reader's own is in the titles.
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", year: "numeric", timeZone: "UTC" });
const HERE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** 12345 as `12,345`. */
export function count(number) {
  return COUNT.format(number);
}

/** 12345 as `12.3K`. */
export function shortCount(number) {
  return SHORT.format(number);
}

/** About what numbers add up to: JSON gives those beyond 2^53 as BigInts, which add to no others. */
export function roughSum(...numbers) {
  return numbers.reduce((all, one) => all + Number(one), 0);
}

/** `1 event`, `2 events`. */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Bytes as `512 B`, `1.5 KB`, `5.0 MB`. */
export function bytes(number) {
  if (number < 1024) return `${number} B`;
  if (number < 1024 * 1024) return `${(number / 1024).toFixed(1)} KB`;
  return `${(number / 1024 / 1024).toFixed(1)} MB`;
}

/** The time of day of an ISO time, UTC; the text itself where it is none. */
export function clock(iso) {
  const moment = new Date(iso);
  return Number.isNaN(moment.getTime()) ? iso : CLOCK.format(moment);
}

/** The day and the time of an ISO time, UTC. */
export function dayAndClock(iso) {
  const moment = new Date(iso);
  return Number.isNaN(moment.getTime()) ? iso : `${DAY.format(moment)}, ${CLOCK.format(moment)}`;
}

/** An ISO time for a title: UTC, and what a clock beside the reader would have shown. */
export function timeTitle(iso) {
  const moment = new Date(iso);
  return Number.isNaN(moment.getTime()) ? String(iso) : `${dayAndClock(iso)} UTC (${HERE.format(moment)} here)`;
}

/** How long ago an ISO time was, roughly: `now`, `4 min`, `3 h`, a day after two days. */
export function ago(iso, now) {
  const moment = new Date(iso).getTime();
  if (Number.isNaN(moment)) return iso;
  const seconds = Math.max(0, (now - moment) / 1000);
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return DAY.format(new Date(moment));
}

/** Milliseconds between two ISO times as `850 ms`, `12.4 s`, `3 min 5 s`; nothing where one is no time. */
export function duration(from, to) {
  const took = new Date(to).getTime() - new Date(from).getTime();
  if (!(took >= 0)) return "";
  if (took < 1000) return `${took} ms`;
  if (took < 60_000) return `${(took / 1000).toFixed(1)} s`;
  return `${Math.floor(took / 60_000)} min ${Math.floor((took % 60_000) / 1000)} s`;
}
