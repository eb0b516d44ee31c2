// An answer as it was written, where Markdown is not wanted.

import { PlainText } from "./text.ts";

export interface MarkdownOptions {
  image?: (url: URL) => boolean;
  code?: (block: HTMLElement, source: () => string) => void;
}

export interface MarkdownWriter {
  write(delta: string): void;
  end(): void;
}

export function markdown(root: HTMLElement, _options: MarkdownOptions = {}): MarkdownWriter {
  const text = new PlainText(root);
  return { write: (delta) => text.write(delta), end: () => {} };
}
