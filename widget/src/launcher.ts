// A button in a corner of somebody's page, and the chat that it opens.

import { dress, h, own, picture } from "./dom.ts";
import { type MotamotChat, spoken } from "./element.ts";
import { Kept } from "./keep.ts";
import { Speech } from "./speech.ts";
import { launcher } from "./styles/launcher.ts";
import { fillSeen } from "./viewport.ts";
import { onLanguage } from "./words/index.ts";

/** What the page's line says, by `data-…`. */
export interface Wanted {
  readonly server: string;
  readonly assistant?: string | undefined;
  readonly lang?: string | undefined;
  readonly images?: string | undefined;
  /** `light` or `dark`; else as the system is. */
  readonly theme?: string | undefined;
  /** The side of the page: `right` or `left`; else where its lines end. */
  readonly position?: string | undefined;
  /** Whether it is open from the start. */
  readonly open?: boolean;
}

function isOpen(kept: unknown): kept is boolean {
  return typeof kept === "boolean";
}

/** Where the chat fills the window, as on a phone. */
const SMALL = "(max-width: 30em), (max-height: 30em)";

/**
 * Put the button into the page, unless it is there: two managers of a site's tags may each have been given the line.
 * The chat begins, and asks its server for something, when it is opened first.
 */
export function launch(wanted: Wanted): HTMLElement {
  const { server, assistant = "" } = wanted;
  const there = [...own("documentElement").getElementsByTagName("motamot-launcher")] as HTMLElement[];
  const same = there.find(({ dataset }) => dataset["server"] === server && dataset["assistant"] === assistant);
  return same ?? new Launcher(wanted).host;
}

class Launcher {
  readonly host = h("motamot-launcher" as "div");
  readonly #wanted: Wanted;
  readonly #speech: Speech;
  readonly #kept: Kept<boolean>;
  readonly #small = matchMedia(SMALL);
  readonly #button = h("button", { type: "button", id: "button", "aria-haspopup": "dialog", "aria-controls": "panel" });
  readonly #panel = h("dialog", { id: "panel", "data-label": "log" });
  #chat: MotamotChat | null = null;

  constructor(wanted: Wanted) {
    this.#wanted = wanted;
    const root = this.host.attachShadow({ mode: "open" });
    dress(root, launcher);
    this.#speech = new Speech(root);
    this.#kept = new Kept("sessionStorage", `${wanted.server} open ${wanted.assistant ?? ""}`, isOpen);
    this.#button.append(picture("talk", "shut"), picture("fold", "open"));
    root.append(this.#panel, this.#button);
    this.host.classList.toggle("left", wanted.position === "left");
    this.host.classList.toggle("right", wanted.position === "right");
    Object.assign(this.host.dataset, { server: wanted.server, assistant: wanted.assistant ?? "" });
    if (wanted.theme !== undefined) this.host.setAttribute("theme", wanted.theme);
    this.#button.addEventListener("click", () => (this.#panel.open ? this.#shut() : this.#open()));
    this.#panel.addEventListener("close", () => this.#told()); // by us, or by a phone's way back
    const gone = new AbortController().signal; // it never goes
    fillSeen(this.#panel, () => this.#small.matches, gone);
    onLanguage(() => this.#speak(), gone);
    this.#speak();
    // What fills a window is opened by hand.
    if (!this.#small.matches && (this.#kept.value ?? wanted.open ?? false)) this.#show();
    this.#told();
    own("body").append(this.host);
  }

  /** Open it, and let the reader write. */
  #open(): void {
    this.#show();
    // What fills the window keeps the focus in itself, and the page behind it from being read out.
    if (this.#small.matches) {
      this.#panel.open = false;
      this.#panel.showModal();
    }
    this.#told();
    this.#chat?.focus();
  }

  #show(): void {
    if (this.#chat === null) {
      this.#chat = element(this.#wanted);
      this.#chat.addEventListener("close", () => this.#shut());
      this.#chat.addEventListener("language", () => this.#speak());
    }
    this.#panel.open = true; // `show()` would take the focus, also while a page loads
    if (this.#chat.parentNode === null) this.#panel.append(this.#chat);
  }

  #shut(): void {
    this.#panel.close();
    this.#told();
    this.#button.focus();
  }

  #told(): void {
    const { open } = this.#panel;
    const before = this.#button.getAttribute("aria-expanded");
    if (before === String(open)) return;
    this.#button.setAttribute("aria-expanded", String(open));
    this.#speech.name(this.#button, open ? "close" : "open");
    if (before === null) return;
    this.#kept.value = open;
    this.host.dispatchEvent(new CustomEvent(open ? "motamot-opened" : "motamot-closed", { bubbles: true }));
  }

  #speak(): void {
    const { server, lang } = this.#wanted;
    this.#speech.speak(this.#chat?.language ?? spoken(server, lang ?? own("documentElement").lang));
  }
}

function element({ server, assistant, lang, images, theme }: Wanted): MotamotChat {
  const chat = document.createElement("motamot-chat") as MotamotChat;
  chat.setAttribute("closable", "");
  for (const [name, value] of Object.entries({ server, assistant, lang, images, theme })) {
    if (value !== undefined) chat.setAttribute(name, value);
  }
  return chat;
}
