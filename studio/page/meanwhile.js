// What is heard while a question is under way: the stream may overtake the answer, which then is the older of the two.

/** Keeps what is heard for those who wait for an answer. */
export class Meanwhile {
  constructor() {
    this.waiting = new Set();
  }

  hear(told) {
    for (const heard of this.waiting) heard.push(told);
  }

  /** Gives an answer, and in their order all that was heard since it was asked for. */
  async during(answer) {
    const heard = [];
    this.waiting.add(heard);
    try {
      return [await answer, heard];
    } finally {
      this.waiting.delete(heard);
    }
  }
}
