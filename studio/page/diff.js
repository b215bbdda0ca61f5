// Differences, coloured and folded: unified diffs, the patches of apply_patch, and the edits of editing tools.

import {button, el} from "./dom.js";
import {visible} from "./text.js";
import {count} from "./format.js";

const FIRST_DIFF_LINES = 24;
const DIFF_STEP = 400; // lines added by one press
const LONGEST_LINE = 2000;
const MOST_COMPARED = 400; // lines on each side of an edit; beyond it old and new stand one below the other

/** Whether a text is a diff: it says so in its first lines, as git, diff and apply_patch do. */
export function isDiff(text) {
  if (typeof text !== "string") return false;
  const start = text.slice(0, 4000);
  return /^(?:diff --git |\*\*\* Begin Patch)/m.test(start) || (/^--- \S/m.test(start) && /^\+\+\+ \S/m.test(start)) || /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(start);
}

/** A unified diff or a patch as an element. */
export function diffView(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return drawn(lines.map((line) => [kindOf(line), line]));
}

function kindOf(line) {
  if (/^(?:diff |index |\+\+\+ |--- |\*\*\* |new file|deleted file|rename |similarity )/.test(line)) return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}

/** What an edit changes, as an element: the lines of `before` and `after`, compared. */
export function editView(before, after) {
  const bothEnd = before.endsWith("\n") && after.endsWith("\n"); // then what stands behind it is no line to be shown
  const lines = (text) => (bothEnd ? text.slice(0, -1) : text).split("\n");
  return drawn(compared(lines(before), lines(after)));
}

function drawn(lines) {
  const table = el("div", { class: "diff-lines", role: "group", "aria-label": "Differences", tabindex: "0" });
  const whole = el("div", { class: "diff" }, summary(lines), table);
  let shown = 0;
  const show = (until) => {
    for (; shown < Math.min(until, lines.length); shown += 1) table.append(lineElement(lines[shown]));
  };
  show(lines.length <= FIRST_DIFF_LINES + 8 ? lines.length : FIRST_DIFF_LINES);
  if (shown < lines.length) whole.append(moreLines(lines, () => shown, show));
  return whole;
}

function moreLines(lines, shown, show) {
  const label = () => `Show ${count(lines.length - shown())} more lines`;
  const more = button(label(), () => {
    show(shown() + DIFF_STEP);
    if (shown() >= lines.length) more.remove();
    else more.textContent = label();
  }, { class: "more" });
  return more;
}

function summary(lines) {
  const added = lines.filter(([kind]) => kind === "added").length;
  const removed = lines.filter(([kind]) => kind === "removed").length;
  return el("div", { class: "diff-summary" }, el("span", { class: "plus" }, `+${count(added)}`), " ", el("span", { class: "minus" }, `−${count(removed)}`));
}

function lineElement([kind, line]) {
  const shown = line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}… (${count(line.length)} characters)` : line;
  return el("div", { class: `diff-line ${kind}` }, shown ? visible(shown) : " ");
}

function compared(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let oldEnd = before.length;
  let newEnd = after.length;
  while (oldEnd > start && newEnd > start && before[oldEnd - 1] === after[newEnd - 1]) {
    oldEnd -= 1;
    newEnd -= 1;
  }
  const same = (lines) => lines.map((line) => ["same", ` ${line}`]);
  const middle = middleOf(before.slice(start, oldEnd), after.slice(start, newEnd));
  return [...same(before.slice(Math.max(0, start - 3), start)), ...middle, ...same(before.slice(oldEnd, oldEnd + 3))];
}

function middleOf(before, after) {
  if (before.length > MOST_COMPARED || after.length > MOST_COMPARED) {
    return [...before.map((line) => ["removed", `-${line}`]), ...after.map((line) => ["added", `+${line}`])];
  }
  return walked(before, after, longestCommon(before, after));
}

function longestCommon(before, after) {
  const width = after.length + 1;
  const table = new Uint16Array((before.length + 1) * width);
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      const at = row * width + column;
      table[at] = before[row] === after[column] ? table[at + width + 1] + 1 : Math.max(table[at + width], table[at + 1]);
    }
  }
  return table;
}

function walked(before, after, table) {
  const width = after.length + 1;
  const lines = [];
  let row = 0;
  let column = 0;
  while (row < before.length || column < after.length) {
    const at = row * width + column;
    if (row < before.length && column < after.length && before[row] === after[column]) {
      lines.push(["same", ` ${before[row]}`]);
      row += 1;
      column += 1;
    } else if (column >= after.length || (row < before.length && table[at + width] >= table[at + 1])) lines.push(["removed", `-${before[row++]}`]);
    else lines.push(["added", `+${after[column++]}`]);
  }
  return lines;
}
