// Markdown's blocks: a text becomes a list of plain objects. No regular expression here looks further than its line,
// so that a hostile text costs what its length costs.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)(.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,12})([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const TASK = /^\[([ xX])\][ \t]+/;
const DIVIDER = /^ {0,3}\|?[ \t]*:?-{1,}:?[ \t]*(?:\|[ \t]*:?-{1,}:?[ \t]*)*\|?[ \t]*$/;

const DEEPEST = 12; // quotes and lists below it are paragraphs

/** The blocks of a text: `{kind: "paragraph", text}`, `heading`, `code`, `rule`, `quote`, `list`, `table`. */
export function markdownBlocks(text) {
  return blocksOf(text.replaceAll("\r\n", "\n").split("\n"), 0);
}

function blocksOf(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) at += 1;
    else at = takeBlock(lines, at, depth, blocks);
  }
  return blocks;
}

function takeBlock(lines, at, depth, blocks) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return takeCode(lines, at, fence, blocks);
  const heading = HEADING.exec(line);
  if (heading) {
    blocks.push({ kind: "heading", level: heading[1].length, text: heading[2].replace(/[ \t]+#+[ \t]*$/, "") });
    return at + 1;
  }
  if (RULE.test(line)) {
    blocks.push({ kind: "rule" });
    return at + 1;
  }
  if (depth < DEEPEST && QUOTE.test(line)) return takeQuote(lines, at, depth, blocks);
  if (depth < DEEPEST && ITEM.test(line)) return takeList(lines, at, depth, blocks);
  if (isTable(lines, at)) return takeTable(lines, at, blocks);
  return takeParagraph(lines, at, depth, blocks);
}

function takeCode(lines, from, fence, blocks) {
  const closes = (line) => line.trim().startsWith(fence[1]) && !line.trim().replaceAll(fence[1][0], "");
  let end = from + 1;
  while (end < lines.length && !closes(lines[end])) end += 1;
  const indent = /^ */.exec(lines[from])[0].length;
  const body = lines.slice(from + 1, end).map((line) => stripIndent(line, indent));
  blocks.push({ kind: "code", language: fence[2].toLowerCase(), text: body.join("\n") });
  return end + 1;
}

function stripIndent(line, most) {
  let spaces = 0;
  while (spaces < most && line[spaces] === " ") spaces += 1;
  return line.slice(spaces);
}

function takeQuote(lines, from, depth, blocks) {
  let end = from;
  const inner = [];
  while (end < lines.length && QUOTE.test(lines[end])) inner.push(lines[end++].replace(QUOTE, ""));
  blocks.push({ kind: "quote", blocks: blocksOf(inner, depth + 1) });
  return end;
}

function takeList(lines, from, depth, blocks) {
  const first = ITEM.exec(lines[from]);
  const ordered = /\d/.test(first[2]);
  const list = { kind: "list", ordered, start: ordered ? Number.parseInt(first[2], 10) : 1, items: [] };
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || /\d/.test(item[2]) !== ordered || item[1].length > first[1].length + 3 || RULE.test(lines[at])) break;
    at = takeItem(lines, at, item, depth, list.items);
  }
  blocks.push(list);
  return at;
}

function takeItem(lines, from, item, depth, items) {
  const indent = item[0].length;
  const inner = [lines[from].slice(indent)];
  let at = from + 1;
  while (at < lines.length) {
    const line = lines[at];
    const spaces = line.length - line.trimStart().length;
    if (!line.trim()) {
      if (!belongs(lines, at + 1, item[1].length)) break;
    } else if (spaces <= item[1].length && (ITEM.test(line) || startsBlock(line) || !lines[at - 1].trim())) break;
    inner.push(stripIndent(line, indent));
    at += 1;
  }
  while (at < lines.length && !lines[at].trim()) at += 1;
  const task = TASK.exec(inner[0]);
  if (task) inner[0] = inner[0].slice(task[0].length);
  items.push({ done: task ? task[1] !== " " : null, blocks: blocksOf(inner, depth + 1) });
  return at;
}

// Whether what stands below a blank line still belongs to the item: it is indented more than the item's mark.
function belongs(lines, at, indent) {
  if (at >= lines.length || !lines[at].trim()) return false;
  return lines[at].length - lines[at].trimStart().length > indent;
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
}

function isTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && lines[at + 1].length < 2000 && DIVIDER.test(lines[at + 1]);
}

function takeTable(lines, from, blocks) {
  const head = cells(lines[from]);
  const align = cells(lines[from + 1]).map((cell) => {
    const right = cell.endsWith(":");
    return cell.startsWith(":") && right ? "center" : right ? "right" : "left";
  });
  let end = from + 2;
  const rows = [];
  while (end < lines.length && lines[end].trim() && lines[end].includes("|")) rows.push(cells(lines[end++]).slice(0, head.length));
  blocks.push({ kind: "table", head, align, rows });
  return end;
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  const found = [];
  let cell = "";
  for (let at = 0; at < inner.length; at += 1) {
    if (inner[at] === "\\" && inner[at + 1] === "|") cell += inner[++at];
    else if (inner[at] === "|") {
      found.push(cell.trim());
      cell = "";
    } else cell += inner[at];
  }
  found.push(cell.trim());
  return found;
}

function takeParagraph(lines, from, depth, blocks) {
  let end = from + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines[end]) && !(depth < DEEPEST && ITEM.test(lines[end])) && !isTable(lines, end)) {
    end += 1;
  }
  blocks.push({ kind: "paragraph", text: lines.slice(from, end).map((line) => line.trimStart()).join("\n") });
  return end;
}
