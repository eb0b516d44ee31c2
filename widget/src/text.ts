// Text as text, for as long as it comes.

/**
 * Characters after which text goes on in another node: a browser then lays out again little of what stands.
 * (100 kB without a line end, 200 pieces a second, in Chromium: no frame over 75 ms; in one node, tasks of 120 ms.)
 */
const NODE_CHARACTERS = 4000;

/** Appends to an element, as text. */
export class PlainText {
  readonly #root: HTMLElement;
  #node: Text | null = null;

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  write(text: string): void {
    if (this.#node !== null && this.#node.length <= NODE_CHARACTERS) this.#node.appendData(text);
    else {
      this.#node = document.createTextNode(text);
      this.#root.append(this.#node);
    }
  }

  /** Begin anew. */
  clear(): void {
    this.#root.replaceChildren();
    this.#node = null;
  }
}
