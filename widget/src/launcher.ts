// A button in a corner of somebody's page, and the chat that it opens.

import { dress, h, picture } from "./dom.ts";
import { Kept } from "./keep.ts";
import { Speech } from "./speech.ts";
import { launcher } from "./styles/launcher.ts";
import { preferred } from "./words/index.ts";

/** What the page's line says, by `data-…`. */
export interface Wanted {
  readonly server: string;
  readonly assistant?: string | undefined;
  readonly lang?: string | undefined;
  readonly images?: string | undefined;
  /** The side of the page: `right` (else) or `left`. */
  readonly position?: string | undefined;
  /** Whether it is open from the start. */
  readonly open?: boolean;
}

function isOpen(kept: unknown): kept is boolean {
  return typeof kept === "boolean";
}

/** Put the button into the page. The chat begins, and asks its server for something, when it is opened first. */
export function launch(wanted: Wanted): HTMLElement {
  const host = h("motamot-launcher" as "div");
  const root = host.attachShadow({ mode: "open" });
  dress(root, launcher);
  const speech = new Speech(root);
  const kept = new Kept("sessionStorage", `${wanted.server} open ${wanted.assistant ?? ""}`, isOpen);
  const button = h("button", { type: "button", id: "button", "aria-expanded": "false", "aria-controls": "panel" });
  const panel = h("div", { id: "panel", role: "dialog", "data-label": "log" });
  panel.hidden = true;
  button.append(picture("talk", "shut"), picture("fold", "open"));
  root.append(panel, button);
  host.classList.toggle("left", wanted.position === "left");
  let chat: HTMLElement | null = null;

  const show = (open: boolean) => {
    kept.value = open;
    if (open && chat === null) {
      chat = element(wanted);
      chat.addEventListener("close", () => {
        show(false);
        button.focus();
      });
      panel.append(chat);
    }
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    speech.name(button, open ? "close" : "open");
  };
  button.addEventListener("click", () => {
    show(panel.hidden !== false);
    if (!panel.hidden) chat?.focus();
  });
  const languages = [wanted.lang ?? document.documentElement.lang, ...navigator.languages].filter(Boolean);
  speech.speak(preferred(languages) ?? "en");
  show(kept.value ?? wanted.open ?? false);
  document.body.append(host);
  return host;
}

function element({ server, assistant, lang, images }: Wanted): HTMLElement {
  const chat = document.createElement("motamot-chat");
  chat.setAttribute("closable", "");
  for (const [name, value] of Object.entries({ server, assistant, lang, images })) {
    if (value !== undefined) chat.setAttribute(name, value);
  }
  return chat;
}
