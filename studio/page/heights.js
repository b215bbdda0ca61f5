// The heights of the rows of a list: measured where a row was seen, a guess elsewhere. Sums and searches take
// O(log n), so that a list of a hundred thousand rows of different heights is one subtraction away from any place.

/** Heights in CSS pixels; a Fenwick tree of what each differs from the guess. */
export class Heights {
  constructor(guess) {
    this.guess = guess;
    this.size = 0;
    this.grow(1024);
  }

  grow(capacity) {
    const measured = new Float64Array(capacity);
    measured.set(this.measured ?? []);
    this.measured = measured;
    this.tree = new Float64Array(capacity + 1);
    for (let index = 1; index <= capacity; index += 1) {
      this.tree[index] += this.differs(index - 1);
      const above = index + (index & -index);
      if (above <= capacity) this.tree[above] += this.tree[index];
    }
  }

  differs(index) {
    return this.measured[index] ? this.measured[index] - this.guess : 0;
  }

  /** How many rows there are now; what was measured from `keep` on is forgotten. */
  resize(size, keep) {
    const capacity = this.measured.length;
    for (let index = keep; index < this.size; index += 1) if (this.measured[index]) this.set(index, 0);
    if (size > capacity) this.grow(Math.max(size, capacity * 2));
    this.size = size;
  }

  known(index) {
    return this.measured[index] > 0;
  }

  of(index) {
    return this.measured[index] || this.guess;
  }

  /** Note a measured height; 0 forgets it. */
  set(index, height) {
    const before = this.differs(index);
    this.measured[index] = height;
    const change = this.differs(index) - before;
    if (!change) return;
    for (let at = index + 1; at < this.tree.length; at += at & -at) this.tree[at] += change;
  }

  /** Where a row begins. */
  top(index) {
    let sum = index * this.guess;
    for (let at = index; at > 0; at -= at & -at) sum += this.tree[at];
    return sum;
  }

  get total() {
    return this.top(this.size);
  }

  /** The row at a height from the top: the last one that begins at or above it. */
  at(height) {
    let index = 0;
    let left = height;
    let step = 1;
    while (step * 2 < this.tree.length) step *= 2;
    for (; step > 0; step >>= 1) {
      if (index + step > this.size) continue;
      const sum = step * this.guess + this.tree[index + step];
      if (sum <= left) {
        left -= sum;
        index += step;
      }
    }
    return Math.min(index, Math.max(0, this.size - 1));
  }
}
