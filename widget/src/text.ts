// Text as text, for as long as it comes.

/**
 * UTF-16 units after which text goes on in another node: what is appended to is copied, and a browser then lays out
 * again little of what stands.
 * (100 kB without a line end, 200 pieces a second, in Chromium: no frame over 75 ms; in one node, tasks of 120 ms.)
 */
export const NODE = 4000;

/** Append to an element, as text. */
export function appendText(element: HTMLElement, text: string): void {
  const last = element.lastChild;
  if (isTextNode(last) && last.length < NODE) last.appendData(text);
  else element.append(text);
}

export function isTextNode(node: Node | null): node is Text {
  return node !== null && node.nodeType === 3;
}
