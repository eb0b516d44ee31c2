// The reading panel: where somebody says how they read best. Every choice is seen at once in the chat below.

import { h, picture } from "./dom.ts";
import { apply, CHOICES, type Part, type Reading, ReadingChoice, usual } from "./reading.ts";
import type { Speech } from "./speech.ts";
import type { Word } from "./words/index.ts";

/** The panel, the button that opens it, and what is chosen in it, for one chat. */
export class ReadingPanel {
  readonly button: HTMLButtonElement;
  readonly element: HTMLDialogElement;
  readonly #chat: HTMLElement;
  readonly #choice: ReadingChoice;
  readonly #reset: HTMLButtonElement;

  /** chat: what is to look so. gone: when it is no longer there. */
  constructor(chat: HTMLElement, speech: Speech, gone: AbortSignal) {
    this.#chat = chat;
    this.button = h("button", { type: "button", id: "reading", "aria-expanded": "false", "aria-controls": "reading-panel" });
    this.button.dataset["label"] = "reading";
    this.button.append(picture("letters"), h("span", { "data-words": "reading" }));
    const close = h("button", { type: "button", class: "shut", "data-label": "shut" }, picture("close"));
    this.#reset = h("button", { type: "button", "data-words": "usual" });
    const title = h("h2", { id: "reading-title", "data-words": "reading" });
    const groups = (Object.keys(CHOICES) as Part[]).map((part) => group(part, speech));
    const foot = h("div", {}, this.#reset);
    this.element = h("dialog", { id: "reading-panel", "aria-labelledby": "reading-title" }, close, title, ...groups, foot);
    this.#choice = new ReadingChoice(() => this.#show(), gone);
    this.element.addEventListener("change", (event) => this.#chosen(event.target as HTMLInputElement));
    this.#reset.addEventListener("click", () => {
      this.#choice.value = {};
      this.element.querySelector<HTMLInputElement>("input:checked")?.focus(); // this button goes
    });
    close.addEventListener("click", () => this.#close());
    this.button.addEventListener("click", () => (this.element.open ? this.#close() : this.#open()));
    const escape = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !this.element.open) return;
      event.stopPropagation(); // closes this, and stops no answer
      event.preventDefault(); // nor does it close what this is in
      this.#close();
    };
    this.element.addEventListener("keydown", escape);
    this.button.addEventListener("keydown", escape);
    chat.addEventListener("pointerdown", (event) => {
      const path = event.composedPath();
      if (this.element.open && !path.includes(this.element) && !path.includes(this.button)) this.#close(false);
    });
    this.#show();
  }

  #open(): void {
    this.element.show();
    this.button.setAttribute("aria-expanded", "true");
    this.element.querySelector<HTMLInputElement>("input:checked")?.focus();
  }

  #close(back = true): void {
    this.element.close();
    this.button.setAttribute("aria-expanded", "false");
    if (back) this.button.focus();
  }

  #chosen({ name, value }: HTMLInputElement): void {
    this.#choice.value = { ...this.#choice.value, [name]: value } as Reading;
  }

  /** Look as was chosen, here or in another chat. */
  #show(): void {
    const { value } = this.#choice;
    apply(value, this.#chat);
    for (const input of this.element.querySelectorAll("input")) {
      input.checked = input.value === (value[input.name as Part] ?? usual(input.name as Part));
    }
    this.#reset.hidden = Object.keys(value).length === 0;
  }
}

/** What there is to choose from for one part. */
function group(part: Part, speech: Speech): HTMLFieldSetElement {
  const choices = CHOICES[part].map((value) => {
    const word = h("span");
    if (part === "size") word.append(h("bdi", { dir: "ltr" }, `${value} %`));
    else speech.say(word, `${part}_${value}`);
    return h("label", { "data-choice": value }, h("input", { type: "radio", name: part, value }), word);
  });
  return h("fieldset", {}, h("legend", { "data-words": part satisfies Word }), h("div", { class: "choices" }, ...choices));
}
