// JSON with its large integers exact: a log may hold integers that a JavaScript number would round in silence.

const MANY_DIGITS = /\d{16}/;

/** Parse JSON; an integer beyond 2^53 becomes a BigInt. */
export function parseJson(text) {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) => {
    const exact = typeof value !== "number" || Number.isSafeInteger(value) || !/^-?\d+$/.test(context?.source ?? "");
    return exact ? value : BigInt(context.source);
  });
}

/** The JSON of a value, two blanks a level. */
export function jsonText(value) {
  return JSON.stringify(value, (_key, one) => (typeof one === "bigint" ? (JSON.rawJSON?.(String(one)) ?? String(one)) : one), 2);
}
