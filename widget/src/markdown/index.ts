// An answer's Markdown, shown while it comes.

import { DomRenderer, type MarkdownOptions } from "./dom.ts";
import { Parser } from "./parser.ts";

export type { MarkdownOptions } from "./dom.ts";

export interface MarkdownWriter {
  /** More of the answer: any slice of it, even one that cuts a surrogate pair. What is certain is shown at once. */
  write(delta: string): void;
  /** The answer is over, or was cut off here: what is open is closed. */
  end(): void;
}

/** Show an answer in an element, which should have `white-space: pre-wrap`: line ends and spaces in paragraphs stay. */
export function markdown(root: HTMLElement, options: MarkdownOptions = {}): MarkdownWriter {
  const renderer = new DomRenderer(root, options);
  return new Parser(renderer, renderer.root);
}
