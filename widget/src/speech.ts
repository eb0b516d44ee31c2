// Words in the reader's language, which may change while they are shown.

import { words } from "./words/index.ts";

const SAYING = "[data-words], [data-label], [data-placeholder]";

/** What the elements of one shadow root say. Which words, is written on them: `data-words`, `data-label` and so on. */
export class Speech {
  language = "en";
  readonly #root: ParentNode;

  constructor(root: ParentNode) {
    this.#root = root;
  }

  /** Change the language, of what is shown too. */
  speak(language: string): void {
    this.language = language;
    this.relabel(this.#root);
  }

  /** Let an element say these words, and go on saying them in whatever language is chosen; "": nothing. told: see `words`. */
  say(element: HTMLElement, name: string, told = ""): void {
    element.dataset["words"] = name;
    element.dataset["told"] = told;
    this.#say(element);
  }

  /** Let an element without words of its own (a button with a picture) be called this. */
  name(element: HTMLElement, label: string): void {
    element.dataset["label"] = label;
    this.#say(element);
  }

  /** Say it once to who listens and does not see it. region: waits for a pause (`status`), or does not (`alert`). */
  announce(region: HTMLElement, name: string, told = ""): void {
    const { words: said, told: before } = region.dataset;
    if (said !== name || before !== told) this.say(region, name, told);
  }

  /** Let everything in here say its words. */
  relabel(root: ParentNode): void {
    for (const element of root.querySelectorAll<HTMLElement>(SAYING)) this.#say(element);
  }

  #say(element: HTMLElement): void {
    const { words: said, told = "", label, placeholder } = element.dataset;
    if (said !== undefined) {
      element.dir = "auto"; // English on a page that is written from right to left keeps its full stops at its ends
      element.textContent = said === "" ? "" : words(this.language, said, told);
    }
    if (label !== undefined) {
      element.setAttribute("aria-label", words(this.language, label));
      if (element instanceof HTMLButtonElement) element.title = words(this.language, label);
    }
    if (placeholder !== undefined) element.setAttribute("placeholder", words(this.language, placeholder));
  }
}
