// `<motamot-chat>`: a chat that fills its box.

import { Chat } from "./chat.ts";
import { type Config, isConfig } from "./config.ts";
import { dress, own } from "./dom.ts";
import { type Assistant, Frame } from "./frame.ts";
import { Kept } from "./keep.ts";
import { ReadingPanel } from "./panel.ts";
import { impostor, refusal, Service } from "./service.ts";
import { styles } from "./styles/index.ts";
import { fillSeen } from "./viewport.ts";
import { addLanguage, isLanguage, onLanguage, preferred } from "./words/index.ts";

let home = "";

/** Where the chat's server is, for elements that name none: where this script came from. */
export function setHome(url: string): void {
  home = url;
}

/** server: its whole address. What somebody has chosen to read in there, else what the page is in (`around`), else what the browser prefers. */
export function spoken(server: string, around: string): string {
  const kept = language(new Service(new URL(server))).value;
  return kept ?? preferred([around, ...navigator.languages]) ?? "en";
}

function language({ place }: Service): Kept<string> {
  return new Kept("localStorage", `${place} language`, isLanguage);
}

/** On a server that renders pages there is no HTMLElement: the module can be imported there all the same. */
const Base: typeof HTMLElement = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);

/**
 * A chat.
 *
 * Attributes: `server`, the chat's address (by default where this script came from); `assistant`, its name (by default
 * there is a choice, where there are several); `lang`; `theme`, `light` or `dark` (by default as the system is);
 * `images`, the hosts from which images may come; `page`, where it is all of its page; `closable`, where it has a button
 * that sends the event `close`.
 */
export class MotamotChat extends Base {
  static readonly observedAttributes = ["server", "assistant", "lang", "images", "page", "closable"];

  /** Let all chats know another language. name: as it calls itself; words that are missing are said in English. */
  static addLanguage(tag: string, name: string, words: Readonly<Record<string, string>>): void {
    addLanguage(tag, name, words);
  }

  readonly #root: ShadowRoot;
  #here: Here | null = null;
  #changed = false;

  constructor() {
    super();
    this.#root = this.attachShadow({ mode: "open", delegatesFocus: false });
  }

  connectedCallback(): void {
    if (this.#here === null) this.#begin();
  }

  /** Moved within the page it goes on; taken out of it, it lets go. */
  disconnectedCallback(): void {
    queueMicrotask(() => {
      if (!this.isConnected) this.#end();
    });
  }

  /** In another window (picture in picture, a frame) it looks as it did: no sheet of this one goes with it. */
  adoptedCallback(): void {
    dress(this.#root, styles);
  }

  attributeChangedCallback(name: string, before: string | null, now: string | null): void {
    if (this.#here === null || before === now || this.#changed) return;
    if (name === "lang") return this.#here.speak();
    this.#changed = true; // several may be changed together
    queueMicrotask(() => {
      this.#changed = false;
      if (this.#here === null) return;
      this.#end();
      this.#begin();
    });
  }

  /** What it speaks. */
  get language(): string {
    return this.#here?.frame.speech.language ?? "en";
  }

  /** Stop the answer under way, as the reader can. */
  stop(): void {
    this.#here?.chat?.stop();
  }

  /** Let the reader write. */
  override focus(): void {
    this.#here?.frame.focus();
  }

  #begin(): void {
    dress(this.#root, styles);
    this.#here = new Here(this, this.#root);
  }

  #end(): void {
    this.#here?.leave();
    this.#here = null;
  }
}

/** Define `<motamot-chat>`. Done again, or beside the script of another page's part, it stays the first. */
export function define(): void {
  if (customElements.get("motamot-chat") === undefined) customElements.define("motamot-chat", MotamotChat);
}

/** A chat from when its element came into the page until it went. */
class Here {
  readonly frame: Frame;
  chat: Chat | null = null;
  readonly #element: HTMLElement;
  readonly #page: boolean;
  readonly #gone = new AbortController();
  readonly #language: Kept<string>;
  readonly #service: Service;
  #wanted = false; // something was sent before the server had said who answers

  constructor(element: HTMLElement, root: ShadowRoot) {
    this.#element = element;
    this.#page = element.hasAttribute("page");
    this.frame = new Frame(root, this.#page);
    this.frame.add(new ReadingPanel(this.frame.parts.chat, this.frame.speech, this.#gone.signal));
    this.#service = new Service(new URL(element.getAttribute("server") ?? home, element.baseURI));
    this.#language = language(this.#service);
    this.speak();
    this.frame.busy(false);
    this.frame.parts.close.hidden = !element.hasAttribute("closable");
    this.#attend();
    onLanguage(() => this.speak(), this.#gone.signal);
    if (this.#page) fillSeen(this.frame.parts.chat, () => true, this.#gone.signal);
    if (this.#page && matchMedia("(pointer: fine)").matches) this.frame.focus();
    void this.#meet();
  }

  leave(): void {
    this.#gone.abort();
    this.chat?.leave();
  }

  /** Speak what the reader has chosen, else what the page is in, else what the browser prefers. */
  speak(): void {
    const around = this.#page ? "" : (this.#element.closest<HTMLElement>("[lang]") ?? own("documentElement")).lang;
    this.frame.speak(spoken(this.#service.base, around));
    queueMicrotask(() => this.#element.dispatchEvent(new CustomEvent("language"))); // once this is what the element has
    if (this.#page) own("documentElement").lang = this.frame.speech.language;
  }

  /** Ask the server who answers. */
  async #meet(): Promise<void> {
    this.frame.trouble("");
    let config: Config;
    try {
      const response = await this.#service.public("api/widget", { signal: this.#gone.signal });
      if (!response.ok) throw await refusal(response);
      const told: unknown = await response.json();
      if (!isConfig(told)) throw impostor();
      config = told;
    } catch {
      if (this.#gone.signal.aborted) return;
      console.warn(`motamot: ${this.#service.base} could not be reached.${this.#why}`);
      const again = () => {
        removeEventListener("online", again);
        void this.#meet();
      };
      addEventListener("online", again, { signal: this.#gone.signal });
      return this.frame.trouble("unreachable", again);
    }
    const named = this.#element.getAttribute("assistant");
    const wanted = named ?? (this.#page ? new URLSearchParams(location.search).get("assistant") : null);
    const { assistants } = config;
    const found = assistants.find(({ name }) => name === wanted) ?? (named === null ? assistants[0] : undefined);
    if (found === undefined) {
      const names = assistants.map(({ name }) => `"${name}"`).join(", ") || "none";
      console.warn(`motamot: ${this.#service.base} has no assistant "${named}" for this page; it has ${names}.`);
      return this.frame.trouble("nobody");
    }
    const choice = named === null ? assistants : [found];
    this.#choose(found, choice, config);
    this.#onChoice(choice, config);
    if (this.#wanted) this.chat?.send();
  }

  /** For who builds the site: the likeliest reason why its page gets no answer. */
  get #why(): string {
    if (!this.#service.foreign) return "";
    const { origin } = globalThis;
    if (origin !== "null") return ` Is ${origin} in its settings' "origins"?`;
    return " A page opened as a file, or in a sandboxed frame, has no origin that could be allowed: serve it over HTTP.";
  }

  #choose(assistant: Assistant, all: readonly Assistant[], config: Config): void {
    this.chat?.leave();
    this.frame.introduce(assistant, all);
    if (this.#page) document.title = assistant.title;
    const hosts = (this.#element.getAttribute("images") ?? "").toLowerCase().split(/\s+/);
    const image = ({ protocol, host }: URL) => /^https?:$/.test(protocol) && hosts.includes(host);
    this.chat = new Chat(this.#service, config, assistant.name, this.frame, image);
  }

  #onChoice(all: readonly Assistant[], config: Config): void {
    const { assistants } = this.frame.parts;
    const chosen = () => {
      const name = assistants.value;
      const found = all.find((one) => one.name === name);
      if (this.#page) location.search = `?${new URLSearchParams({ assistant: name })}`;
      else if (found !== undefined) this.#choose(found, all, config);
    };
    assistants.addEventListener("change", chosen, { signal: this.#gone.signal });
  }

  /** Do what the reader does. */
  #attend(): void {
    const { question, send, fresh, remove, sure, no, language, close, chat } = this.frame.parts;
    const { signal } = this.#gone;
    question.addEventListener(
      "keydown",
      (event) => {
        // keyCode 229: Safari ends a composition before the Enter that confirmed it.
        if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
        event.preventDefault();
        this.#send();
      },
      { signal },
    );
    send.addEventListener(
      "click",
      (event) => {
        if (event.detail > 1) return; // the second half of a double click: it would stop what the first half sent
        if (this.chat?.busy) this.chat.stop();
        else this.#send();
        this.frame.focus();
      },
      { signal },
    );
    // On a page of its own Escape stops wherever the focus is; elsewhere it may be meant for others.
    const reach: EventTarget = this.#page ? window : chat;
    reach.addEventListener("keydown", (event) => this.#escape(event as KeyboardEvent), { signal });
    fresh.addEventListener("click", () => {
      this.chat?.forget();
      this.frame.focus();
    });
    remove.addEventListener("click", () => {
      sure.returnValue = "";
      sure.showModal();
      no.focus();
    });
    sure.addEventListener("close", () => {
      if (sure.returnValue === "remove") void this.chat?.remove();
    });
    language.addEventListener("click", () => {
      this.#language.value = this.frame.nextLanguage;
      this.speak();
    });
    close.addEventListener("click", () => this.#close());
  }

  #escape(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.isComposing) return;
    if (!this.chat?.busy) return this.#close();
    event.preventDefault(); // a panel that fills a phone would be closed by it
    this.chat.stop();
  }

  #close(): void {
    if (this.#element.hasAttribute("closable")) this.#element.dispatchEvent(new CustomEvent("close"));
  }

  #send(): void {
    if (this.chat === null) this.#wanted = true;
    else this.chat.send();
  }
}
