// What the server says where it does not answer as it was asked.

/** What the server answered instead of what was asked for: `status`, `kind`, a message and a hint. */
export class AnswerError extends Error {
  constructor(status, told) {
    super(told?.message ?? `the server answered ${status}`);
    this.status = status;
    this.kind = told?.kind ?? "";
    this.hint = told?.hint ?? "";
  }
}

/** What such an answer tells; null where it is none of ours. */
export function toldBy(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return null;
  }
}
