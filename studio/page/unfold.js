// Opens what is folded around a text, and nothing else: what was searched for is to be seen.

const MOST_FOLDS = 200; // looked into for one text: a tree of JSON may have any number

/** Open what hides a text inside an element, which may not be in the page yet; without regard to case. */
export function unfold(element, text) {
  const needle = text.toLowerCase();
  if (!needle || seenText(element).includes(needle)) return;
  const budget = { left: MOST_FOLDS };
  if (!openedAround(element, needle, budget)) showMore(element, needle, budget);
}

// A fold builds what it holds when it is opened; one that does not hold the text is closed again.
function openedAround(element, needle, budget) {
  for (const fold of element.querySelectorAll("details:not([open])")) {
    if (fold.parentElement.closest("details:not([open])") || budget.left <= 0) continue;
    budget.left -= 1;
    fold.open = true;
    fold.dispatchEvent(new Event("toggle"));
    if (seenText(fold).includes(needle) || openedAround(fold, needle, budget) || showMore(fold, needle, budget)) return true;
    fold.open = false;
  }
  return false;
}

function showMore(element, needle, budget) {
  for (let more = seenMore(element); more && budget.left > 0; more = seenMore(element)) {
    budget.left -= 1;
    more.click();
    if (seenText(element).includes(needle)) return true;
  }
  return false;
}

function seenMore(element) {
  return [...element.querySelectorAll("button.more")].find((more) => !more.closest("details:not([open])"));
}

function seenText(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const texts = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.closest("details:not([open]) > :not(summary)")) texts.push(node.data);
  }
  return texts.join("").toLowerCase();
}
