// Marks what was searched for, without touching the rows: the browser paints ranges.

const MOST_RANGES = 400;

/** Mark a text in some elements, without regard to case; an empty one clears the marks. */
export function highlight(elements, text) {
  if (!globalThis.CSS?.highlights) return;
  const ranges = text ? found(elements, text.toLowerCase()) : [];
  if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges));
  else CSS.highlights.delete("found");
}

function found(elements, needle) {
  const ranges = [];
  for (const element of elements) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < MOST_RANGES; node = walker.nextNode()) mark(node, needle, ranges);
  }
  return ranges;
}

function mark(node, needle, ranges) {
  const text = node.data.toLowerCase();
  if (text.length !== node.data.length) return; // lower case of another length: the places would be wrong
  for (let at = text.indexOf(needle); at >= 0 && ranges.length < MOST_RANGES; at = text.indexOf(needle, at + needle.length)) {
    const range = new Range();
    range.setStart(node, at);
    range.setEnd(node, at + needle.length);
    ranges.push(range);
  }
}
