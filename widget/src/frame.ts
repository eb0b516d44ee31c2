// What stands around the conversation: head, box to ask in, and what is said to who listens.

import { h, picture } from "./dom.ts";
import type { ReadingPanel } from "./panel.ts";
import { Scroller } from "./scroller.ts";
import { Speech } from "./speech.ts";
import { direction, languages, nameOf } from "./words/index.ts";

/** An assistant, as the server introduces it. */
export interface Assistant {
  readonly name: string;
  readonly title: string;
  readonly marks: readonly string[];
}

/** The elements of a chat without what is said in it. page: whether the chat is all of its page. */
export class Frame {
  readonly speech: Speech;
  readonly scroller: Scroller;
  readonly parts: ReturnType<typeof parts>;
  /** Level of the headings within the conversation. */
  readonly level: number;
  readonly #root: ShadowRoot;
  #focused: Element | null = null; // also once it has gone, unless the focus went elsewhere before
  #trying: () => void = () => {};

  constructor(root: ShadowRoot, page: boolean) {
    this.#root = root;
    this.level = page ? 2 : 3;
    this.parts = parts(page);
    root.replaceChildren(this.parts.chat);
    this.speech = new Speech(root);
    const { log, content, latest, sure, yes, no, question, send, trouble } = this.parts;
    this.scroller = new Scroller(log, content, latest);
    trouble.button.addEventListener("click", () => {
      this.focus();
      this.#trying();
    });
    yes.addEventListener("click", () => sure.close("remove"));
    no.addEventListener("click", () => sure.close());
    sure.addEventListener("keydown", (event) => {
      if (event.key === "Escape") event.stopPropagation(); // closes this, and stops no answer
    });
    question.addEventListener("input", () => this.fit());
    send.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays where one writes
    this.parts.chat.addEventListener("focusin", ({ target }) => {
      this.#focused = target as Element;
    });
    this.parts.chat.addEventListener("focusout", ({ target }) => {
      if ((target as Element).checkVisibility()) this.#focused = null;
    });
    if (!page) keepKeys(this.parts.chat);
  }

  /** Have the panel in which the reader says how they read best. */
  add({ button, element }: ReadingPanel): void {
    this.parts.language.before(button);
    this.parts.header.after(element);
  }

  /** Speak a language. */
  speak(language: string): void {
    const { chat, language: button } = this.parts;
    chat.lang = language;
    chat.dir = direction(language);
    this.speech.speak(language);
    const next = this.nextLanguage;
    button.lang = next;
    const tag = h("span", { class: "tag", "aria-hidden": "true" }, next); // where there is little room
    button.replaceChildren(h("span", { class: "name" }, nameOf(next)), tag);
  }

  /** The language after this one. */
  get nextLanguage(): string {
    const all = languages();
    return all[(all.indexOf(this.speech.language) + 1) % all.length] ?? "en";
  }

  /** Show who answers. all: who could. */
  introduce(assistant: Assistant, all: readonly Assistant[]): void {
    const { title, choice, assistants, model } = this.parts;
    title.textContent = assistant.title;
    const options = all.map(({ name, title }) => new Option(title, name, false, name === assistant.name));
    assistants.replaceChildren(...options);
    choice.hidden = all.length < 2;
    title.classList.toggle("unseen", all.length >= 2);
    model.hidden = assistant.marks.length === 0;
    model.replaceChildren();
    for (const mark of assistant.marks) {
      const line = h("span");
      this.speech.say(line, mark);
      model.append(line, " ");
    }
  }

  /** Say what is wrong with the chat itself; retry: what to do when it is wanted tried again, if that may help. */
  trouble(what: string, retry: (() => void) | null = null, told = ""): void {
    const { said, button } = this.parts.trouble;
    this.speech.say(said, what, told);
    button.hidden = retry === null;
    this.#trying = retry ?? (() => {});
  }

  /** Whether an answer is under way: then what sends, stops. */
  busy(busy: boolean): void {
    this.parts.send.classList.toggle("busy", busy);
    this.speech.name(this.parts.send, busy ? "stop" : "send");
  }

  /** Nothing has been said yet, or something has. */
  empty(empty: boolean): void {
    this.parts.welcome.hidden = !empty;
  }

  /** Say it once to who listens and does not see it. */
  announce(kind: "status" | "alert", name: string, told = ""): void {
    this.speech.announce(this.parts[kind], name, told);
  }

  /** Give the box the height of what is in it. */
  fit(): void {
    const { question } = this.parts;
    question.style.height = "auto";
    question.style.height = `${question.scrollHeight + question.offsetHeight - question.clientHeight}px`;
  }

  /** What has just gone, a button perhaps, may have had the focus: it is not lost, but goes to where one writes. */
  keepFocus(): void {
    const focused = this.#root.activeElement ?? this.#focused;
    if (focused !== null && !focused.checkVisibility()) this.focus();
  }

  /** Let those around know. detail: no word of what was said: a site may pass it on to whom it likes. */
  tell(what: "asked" | "ended", detail: object): void {
    this.parts.chat.dispatchEvent(new CustomEvent(`motamot-${what}`, { detail, bubbles: true, composed: true }));
  }

  /** Let the reader write. */
  focus(): void {
    this.parts.question.focus({ preventScroll: true });
  }
}

/** What is typed here is no shortcut of the page around: to its listeners it would not seem to be typed in a box. */
function keepKeys(chat: HTMLElement): void {
  for (const kind of ["keydown", "keypress", "keyup"]) chat.addEventListener(kind, (event) => event.stopPropagation());
}

function parts(page: boolean) {
  const title = h(page ? "h1" : "h2", { id: "title" });
  if (page) title.textContent = document.title; // until the server has said more
  const assistants = h("select", { id: "assistants" });
  const choice = h("label", { id: "choice" }, h("span", { class: "unseen", "data-words": "assistants" }), assistants);
  const fresh = pictured("fresh", picture("plus"), "fresh");
  const remove = pictured("remove", picture("bin"), "remove");
  const language = h("button", { type: "button", id: "language" });
  const close = h("button", { type: "button", id: "close", "data-label": "close" }, picture("close"));
  // Within another page these are not what that page begins and ends with.
  const header = h(page ? "header" : "div", { id: "head" }, title, choice, h("div", { id: "acts" }, fresh, remove, language, close));
  const model = h("p", { id: "model" });
  const welcome = h("p", { id: "welcome", "data-words": "welcome" });
  const exchanges = h("ol", { id: "exchanges" });
  const content = h("div", { id: "content" }, model, welcome, exchanges);
  const log = h(page ? "main" : "section", { id: "log", tabindex: "0", "data-label": "log" }, content);
  const latest = pictured("latest", picture("down"), "latest");
  const trouble = { said: h("span"), button: h("button", { type: "button", "data-words": "retry" }) };
  const question = h("textarea", {
    ...{ id: "question", rows: "1", enterkeyhint: "send", autocomplete: "off" },
    ...{ "data-placeholder": "placeholder", "data-label": "question" },
  });
  const send = h("button", { type: "button", id: "send" }, picture("up", "go"), picture("halt", "halt"));
  const footer = h(
    page ? "footer" : "div",
    { id: "foot" },
    h("p", { id: "trouble", role: "alert" }, trouble.said, " ", trouble.button),
    h("div", { id: "composer" }, question, send),
    h("p", { id: "machine", "data-words": "machine" }),
  );
  const status = h("div", { id: "status", class: "unseen", role: "status" });
  const alert = h("div", { id: "alert", class: "unseen", role: "alert" });
  const no = h("button", { type: "button", "data-words": "cancel" });
  const yes = h("button", { type: "button", class: "danger", "data-words": "remove" });
  const sure = h(
    "dialog",
    { id: "sure", "aria-labelledby": "sure-title" },
    h("h2", { id: "sure-title", "data-words": "removeAsk" }),
    h("p", { "data-words": "removeMore" }),
    h("div", {}, no, yes),
  );
  const stage = h("div", { id: "stage" }, log, latest);
  const chat = h("div", { id: "chat" }, header, stage, footer, status, alert, sure);
  choice.hidden = remove.hidden = close.hidden = model.hidden = latest.hidden = trouble.button.hidden = true;
  return {
    ...{ chat, header, title, choice, assistants, fresh, remove, language, close, log, content, model, welcome, exchanges },
    ...{ latest, trouble, question, send, status, alert, sure, yes, no },
  };
}

function pictured(id: string, image: SVGElement, word: string): HTMLButtonElement {
  return h("button", { type: "button", id, "data-label": word }, image, h("span", { "data-words": word }));
}

