// One question and its answer, as the reader sees it. What a server, a model or a visitor wrote becomes text, or what
// Markdown's own writer makes of it from elements, and nothing else.

import { copy } from "./copy.ts";
import { h, picture } from "./dom.ts";
import type { Said } from "./follow.ts";
import { isText } from "./keep.ts";
import { markdown, type MarkdownOptions, type MarkdownWriter } from "./markdown/index.ts";
import type { Speech } from "./speech.ts";
import { appendText } from "./text.ts";

const SOURCE_SCHEMES = ["http:", "https:"]; // what a link that a model wrote may lead to
const RETRIED = ["failed", "interrupted", "abandoned"];
const REGENERATED = ["complete", "truncated", "filtered", "stopped"];
const CONTINUED = ["truncated", "stopped"];

/** How long a button says that something was copied, in milliseconds. */
const COPIED = 2000;

/** An answer as the transcript has it. */
export interface Row {
  readonly exchange: string;
  readonly question: string;
  readonly text: string;
  readonly outcome: string | null;
  readonly code?: string | null;
  readonly message?: string | null;
  readonly marks?: readonly string[];
  readonly key?: string | null;
  readonly replaces?: string | null;
  readonly sources?: readonly Said[];
  readonly tools?: readonly Said[];
}

/** Whether it is one. */
export function isRow(told: unknown): told is Row {
  const { exchange, question, text, outcome, marks = [], tools = [], sources = [] } = Object(told) as Record<keyof Row, unknown>;
  const isObject = (one: unknown) => typeof one === "object" && one !== null;
  return (
    [exchange, question, text, outcome ?? ""].every(isText) &&
    [marks, tools, sources].every(Array.isArray) &&
    [...(tools as unknown[]), ...(sources as unknown[])].every(isObject)
  );
}

/** What the reader may want of an answer. */
export interface Wishes {
  /** The same question once more, in this answer's place. */
  regenerate(view: ExchangeView): void;
  /** The rest of it. */
  goOn(view: ExchangeView): void;
  /** Something was copied. */
  copied(): void;
}

/** A question and its answer, as an item of the list. */
export class ExchangeView {
  /** Its id, "" until the server has said it. */
  exchange = "";
  /** What to do when the reader wants it tried again. */
  retry: () => void = () => {};
  readonly question: string;
  readonly element: HTMLLIElement;
  readonly #speech: Speech;
  readonly #parts: ReturnType<typeof parts>;
  readonly #options: MarkdownOptions;
  readonly #tools = new Map<string, { said: Said; word: HTMLElement }>();
  readonly #sources: Said[] = [];
  #writer: MarkdownWriter | null = null; // none once the answer has ended
  #source = ""; // all of the answer's text
  #waiting = ""; // what came since the last frame
  #thought = ""; // and of the reasoning
  #frame = 0;
  #ends: [event: number, length: number][] = []; // to show as much as the transcript does
  #ended: Said = {};

  /**
   * level: of the headings that name question and answer. image: whether an image of this address may be fetched.
   */
  constructor(question: string, speech: Speech, level: number, wishes: Wishes, image: (url: URL) => boolean) {
    this.question = question;
    this.#speech = speech;
    this.#parts = parts(level);
    const { element, asked, retry, copyAll, regenerate, more } = this.#parts;
    this.element = element;
    asked.textContent = question;
    this.#options = {
      image,
      code: (block, source) => {
        const button = h("button", { type: "button", class: "code-copy" }, ...copyPictures());
        speech.name(button, "copy");
        onCopy(button, source, wishes);
        block.append(button);
      },
    };
    retry.addEventListener("click", () => this.retry());
    regenerate.addEventListener("click", () => wishes.regenerate(this));
    more.addEventListener("click", () => wishes.goOn(this));
    onCopy(copyAll, () => this.#source, wishes);
    speech.relabel(element);
  }

  /** The answer as it stands, to be filled in again. */
  get row(): Row {
    const { exchange, question } = this;
    const { outcome = null, code, message, marks = [] } = this.#ended as Partial<Row>;
    const tools = [...this.#tools.values()].map(({ said }) => said);
    return { exchange, question, text: this.#source, outcome, code, message, marks, tools, sources: [...this.#sources] };
  }

  /** The answer is awaited, anew: nothing of an earlier try stays. */
  begin(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#waiting = this.#thought = this.#source = "";
    this.#ends = [];
    this.#tools.clear();
    this.#sources.length = 0;
    const { agent, tools, sources, text, reasoning, thoughts } = this.#parts;
    for (const part of [agent, tools, sources, text, thoughts]) part.replaceChildren();
    this.#writer = null;
    this.#unend();
    reasoning.hidden = true;
    this.resume();
  }

  /** The answer goes on coming. */
  resume(): void {
    this.#parts.answer.setAttribute("aria-busy", "true");
    this.#unend();
    this.#wait("waiting");
  }

  #unend(): void {
    const { answer, mark, marks, end, actions, retry } = this.#parts;
    this.#speech.say(mark, "");
    marks.replaceChildren();
    answer.removeAttribute("data-outcome");
    end.hidden = actions.hidden = retry.hidden = true;
  }

  #wait(word: string): void {
    this.#speech.say(this.#parts.hint, word);
    this.#parts.wait.hidden = false;
  }

  /** The connection was lost and will be tried again. */
  reconnecting(): void {
    this.#wait("again");
  }

  /** There is a connection, and the answer will come by it. */
  connected(): void {
    this.#wait("waiting");
    this.#parts.wait.hidden = this.#source !== "";
  }

  /** One event of the answer. */
  take(said: Said, number: number): void {
    switch (said["type"]) {
      case "started":
        this.exchange = String(said["exchange"]);
        break;
      case "text":
        this.#append(String(said["text"]));
        this.#ends.push([number, this.#source.length]);
        break;
      case "reasoning":
        this.#thought += String(said["text"]);
        this.#soon();
        break;
      case "routed":
        this.#parts.agent.textContent = String(said["agent"]);
        break;
      case "tool_called":
        this.#tool(String(said["id"]), said, "tool");
        break;
      case "tool_returned":
        this.#tool(String(said["id"]), said, used(said));
        break;
      case "cited":
        this.#cite(said);
        break;
      default: // a kind that is not shown
    }
  }

  #append(text: string): void {
    this.#waiting += text;
    this.#source += text;
    this.#soon();
  }

  /** Once a frame, however much came meanwhile: a page that is hidden has no frames. */
  #soon(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#thought !== "") {
      this.#parts.reasoning.hidden = false;
      appendText(this.#parts.thoughts, this.#thought);
      this.#thought = "";
    }
    if (this.#waiting === "") return;
    this.#parts.wait.hidden = true;
    this.#orPlain(() => (this.#writer === null ? this.#render() : this.#writer.write(this.#waiting)));
    this.#waiting = "";
  }

  /** Where the page's own scripts have broken what elements are made with, the answer is shown as it was written. */
  #orPlain(shown: () => void): void {
    try {
      shown();
    } catch (error) {
      console.warn("motamot: the answer is shown without its Markdown:", error);
      const { text } = this.#parts;
      text.replaceChildren();
      appendText(text, this.#source);
      this.#writer = { write: (more) => appendText(text, more), end: () => {} };
    }
  }

  /** Write all of the text anew: at its beginning, where it goes on after its end, and where it is cut. */
  #render(): void {
    this.#parts.text.replaceChildren();
    this.#writer = markdown(this.#parts.text, this.#options);
    this.#writer.write(this.#source);
  }

  #tool(id: string, said: Said, state: string): void {
    const word = this.#tools.get(id)?.word ?? h("span");
    if (!this.#tools.has(id)) this.#parts.tools.append(h("li", {}, word, " ", h("bdi", {}, String(said["name"]))));
    this.#tools.set(id, { said, word });
    this.#speech.say(word, state);
  }

  #cite(said: Said): void {
    this.#sources.push(said);
    this.#parts.sources.append(source(said));
  }

  /** An answer as the transcript has it, in place of what stands here. */
  fill(row: Row): void {
    this.begin();
    this.exchange = row.exchange;
    row.tools?.forEach((tool, number) => this.#tool(String(number), tool, used(tool)));
    for (const cited of row.sources ?? []) this.#cite(cited);
    this.#append(row.text);
    this.end({ ...row });
  }

  /** The answer has ended; said: the `ended` event. */
  end(said: Said): void {
    this.#ended = said;
    const outcome = String(said["outcome"]);
    if (outcome === "stopped" && said["shown"] !== undefined) this.#cut(Number(said["shown"]));
    const { marks } = this.#parts;
    marks.replaceChildren();
    for (const mark of Array.isArray(said["marks"]) ? said["marks"] : []) {
      const item = h("li");
      this.#speech.say(item, String(mark));
      marks.append(item);
    }
    if (outcome === "failed") this.#close(outcome, String(said["code"] ?? "failed"), String(said["message"] ?? ""));
    else if (outcome !== "complete") this.#close(outcome, outcome);
    else this.#close(outcome, this.#source.trim() === "" ? "empty" : "");
  }

  /** The question was not taken, or its answer was lost. name, told: as for `words`. */
  fail(name: string, told = ""): void {
    this.#ended = { outcome: "failed", code: name, message: told };
    this.#close("failed", name, told);
  }

  #close(outcome: string, name: string, told = ""): void {
    this.#flush();
    this.#orPlain(() => this.#writer?.end());
    this.#writer = null;
    const { answer, wait, mark, marks, end, retry, actions, copyAll, regenerate, more } = this.#parts;
    answer.setAttribute("aria-busy", "false");
    answer.dataset["outcome"] = outcome;
    wait.hidden = true;
    for (const { word } of this.#tools.values()) {
      if (word.dataset["words"] === "tool") this.#speech.say(word, "tool_failed");
    }
    this.#speech.say(mark, name, told);
    retry.hidden = !RETRIED.includes(outcome);
    end.hidden = name === "" && marks.childElementCount === 0;
    const empty = this.#source.trim() === "";
    copyAll.hidden = empty;
    regenerate.hidden = !REGENERATED.includes(outcome);
    more.hidden = empty || !CONTINUED.includes(outcome);
    actions.hidden = copyAll.hidden && regenerate.hidden && more.hidden;
  }

  /** Show the text up to and with event `number`: so much was seen, and so much the transcript keeps. */
  #cut(number: number): void {
    this.#flush();
    const [, length] = this.#ends.findLast(([event]) => event <= number) ?? [0, 0];
    if (length === this.#source.length) return;
    this.#source = this.#source.slice(0, length);
    this.#render();
  }
}

/** The elements of one exchange. */
function parts(level: number) {
  const heading = (word: string) => h("div", { class: "unseen", role: "heading", "aria-level": `${level}`, "data-words": word });
  const asked = h("p", { class: "asked", dir: "auto" });
  const agent = h("p", { class: "agent" });
  const thoughts = h("p", { class: "thoughts", dir: "auto" });
  const reasoning = h("details", { class: "reasoning" }, h("summary", { "data-words": "reasoning" }), thoughts);
  const text = h("div", { class: "text" });
  const tools = h("ul", { class: "tools" });
  const hint = h("span");
  const dots = h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
  const wait = h("p", { class: "wait" }, dots, hint);
  const sources = h("ul", { class: "sources", "data-label": "sources" });
  const marks = h("ul", { class: "marks" });
  const mark = h("span", { class: "mark" });
  const retry = h("button", { type: "button", class: "retry", "data-words": "retry" });
  const end = h("div", { class: "end" }, marks, mark, retry);
  const copyAll = h("button", { type: "button", class: "copy", "data-label": "copy" }, ...copyPictures());
  const regenerate = h("button", { type: "button", class: "regenerate", "data-label": "regenerate" }, picture("again"));
  const more = h("button", { type: "button", class: "more" }, h("span", { "data-words": "more" }));
  const actions = h("div", { class: "actions" }, copyAll, regenerate, more);
  const answer = h("div", { class: "answer" }, heading("answer"), agent, reasoning, text, tools, wait, sources, end, actions);
  const element = h("li", { class: "exchange" }, h("div", { class: "question" }, heading("you"), asked), answer);
  reasoning.hidden = wait.hidden = end.hidden = actions.hidden = true;
  return {
    ...{ element, asked, answer, agent, reasoning, thoughts, text, tools, wait, hint, sources },
    ...{ end, marks, mark, retry, actions, copyAll, regenerate, more },
  };
}

function copyPictures(): SVGElement[] {
  return [picture("copy", "go"), picture("done", "done")];
}

function onCopy(button: HTMLButtonElement, source: () => string, wishes: Wishes): void {
  button.addEventListener("click", async () => {
    if (!(await copy(source(), button))) return;
    wishes.copied();
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), COPIED);
  });
}

function used(tool: Said): string {
  return tool["status"] === "ok" ? "tool_ok" : "tool_failed";
}

function source({ title, url, quote, mark }: Said): HTMLLIElement {
  const item = h("li");
  if (typeof mark === "string") item.append(mark, " "); // as the text cites it: `[12]`
  let link: HTMLElement = h("span");
  try {
    const { href, protocol, username, password } = new URL(String(url));
    // `https://bank.example@elsewhere.example` leads elsewhere.
    if (SOURCE_SCHEMES.includes(protocol) && username + password === "") {
      link = h("a", { href, rel: "noopener noreferrer nofollow", target: "_blank" });
    }
  } catch {
    // no address, or none that can be followed
  }
  link.textContent = String(title);
  item.append(link);
  if (typeof quote === "string") item.append(" ", h("q", {}, quote));
  return item;
}
