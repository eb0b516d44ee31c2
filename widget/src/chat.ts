// A conversation with one assistant: what is asked and followed for its reader, and what other pages of theirs do.

import { Answer, type Body, type Said, type Telling } from "./follow.ts";
import type { Config } from "./config.ts";
import { own } from "./dom.ts";
import type { Frame } from "./frame.ts";
import { Channel, isId, isText, Kept } from "./keep.ts";
import { impostor, isKey, newKey, type Refused, refusal, type Service } from "./service.ts";
import { ExchangeView, isRow, type Row } from "./view.ts";
import { words } from "./words/index.ts";

/** A question whose answer had not begun when the page went is asked again by itself for so long, in milliseconds. */
const UNSENT = 60_000;

/** What the page misses in less than this, in milliseconds, it does not look for when it is seen again. */
const HIDDEN = 1000;

interface Unsent {
  readonly body: Body;
  readonly at: number;
}

/** What another page of this visitor's did. */
interface News {
  readonly conversation: string;
  readonly removed?: boolean;
  readonly exchange?: string;
  readonly message?: string;
  readonly replaces?: string | undefined;
}

/** A conversation. Made, it shows what there is of it; `leave` lets go of everything. */
export class Chat {
  readonly #service: Service;
  readonly #config: Config;
  readonly #assistant: string;
  readonly #frame: Frame;
  readonly #image: (url: URL) => boolean;
  readonly #conversation: Kept<string>; // this page's
  readonly #latest: Kept<string>; // what a new page shows
  readonly #unsent: Kept<Unsent>; // until the server has it
  readonly #others: Channel;
  readonly #gone = new AbortController();
  readonly #views = new Map<unknown, ExchangeView>(); // by exchange id
  readonly #answers = new Map<ExchangeView, Answer>(); // what is followed
  #left: Unsent | null; // what this page was asking when it went, until that is seen to
  #hiddenAt = 0;

  /** image: whether an image of this address may be fetched. */
  constructor(service: Service, config: Config, assistant: string, frame: Frame, image: (url: URL) => boolean) {
    this.#service = service;
    this.#config = config;
    this.#assistant = assistant;
    this.#frame = frame;
    this.#image = image;
    const place = service.place;
    this.#conversation = new Kept("sessionStorage", `${place} conversation ${assistant}`, isId);
    this.#latest = new Kept("localStorage", `${place} conversation ${assistant}`, isId);
    this.#unsent = new Kept("sessionStorage", `${place} unsent ${assistant}`, isUnsent);
    this.#left = this.#unsent.value;
    this.#conversation.value ??= this.#latest.value;
    this.#clear();
    frame.busy(false);
    this.#others = new Channel(place, (said) => this.#hear(said), this.#gone.signal);
    this.#watch();
    void this.#load();
  }

  /** Let go of everything without stopping: the answer under way goes on for as long as the server waits for us. */
  leave(): void {
    this.#gone.abort();
    for (const answer of this.#answers.values()) answer.leave();
    this.#answers.clear();
  }

  get busy(): boolean {
    return this.#answers.size > 0;
  }

  /** Send what stands in the box. */
  send(): void {
    const { question } = this.#frame.parts;
    const message = question.value;
    if (this.busy || message.trim() === "") return;
    if (new TextEncoder().encode(message).length > this.#config.message_bytes) {
      this.#frame.trouble("long"); // it stays where it can be shortened
      return;
    }
    this.#frame.trouble("");
    question.value = "";
    this.#frame.fit();
    this.#ask(message);
  }

  /** Stop what is under way. */
  stop(): void {
    for (const answer of this.#answers.values()) void answer.stop();
  }

  /** Begin anew, here; what runs is stopped. */
  forget(): void {
    this.stop();
    if (this.#latest.value === this.#conversation.value) this.#latest.value = null;
    this.#conversation.value = this.#unsent.value = this.#left = null;
    this.#clear();
  }

  /** Delete the conversation, here and on the server. */
  async remove(): Promise<void> {
    const gone = this.#conversation.value;
    if (gone === null) return;
    this.stop();
    try {
      const response = await this.#service.fetch(conversationPath(gone), { method: "DELETE" });
      if (!response.ok && response.status !== 404) throw await refusal(response);
    } catch {
      if (!this.#gone.signal.aborted) this.#frame.trouble("removeFailed", () => void this.remove());
      return;
    }
    if (this.#gone.signal.aborted) return; // the frame shows another's conversation, and this one is not found any more
    this.#others.post({ conversation: gone, removed: true } satisfies News);
    if (this.#conversation.value === gone) this.forget();
    this.#frame.focus();
  }

  #clear(): void {
    this.#views.clear();
    const { exchanges } = this.#frame.parts;
    if (exchanges.matches(":focus-within")) this.#frame.focus(); // before what has it goes
    exchanges.replaceChildren();
    this.#frame.empty(true);
    this.#frame.parts.remove.hidden = true;
    this.#frame.trouble("");
    this.#frame.keepFocus();
  }

  // Asking and following

  /** Put a question, and show its answer in a new view, or in that of the answer it replaces. */
  #ask(message: string, replaced: ExchangeView | null = null): void {
    const conversation = this.#conversation.value;
    const body: Body = {
      ...{ message, key: newKey(), resumable: true, assistant: this.#assistant },
      ...(conversation === null ? {} : { conversation }),
      ...(replaced === null || replaced.exchange === "" ? {} : { replaces: replaced.exchange }),
    };
    this.#post(body, replaced ?? this.#newView(message));
    this.#frame.scroller.toEnd();
  }

  /** Post a question; the same one again joins the answer it may have got already. */
  #post(body: Body, view: ExchangeView): void {
    this.#unsent.value = { body, at: Date.now() };
    this.#follow(view, { body });
    this.#frame.announce("alert", ""); // what is said again is said again
    this.#frame.announce("status", "coming");
  }

  /** The server has the question, or has said no to it. */
  #sent(body: Body | null): void {
    if (body !== null && this.#unsent.value?.body.key === body.key) this.#unsent.value = null;
  }

  /** Show an answer that somebody has asked for already: this page before it was reloaded, or another page. */
  #join(exchange: string, view: ExchangeView): void {
    this.#views.set(exchange, view);
    this.#follow(view, { exchange });
  }

  #follow(view: ExchangeView, asked: { body: Body } | { exchange: string }): void {
    const body = "body" in asked ? asked.body : null;
    const before = view.row;
    view.begin();
    const over = () => {
      this.#answers.delete(view);
      this.#frame.busy(this.busy);
    };
    const tell: Telling = {
      event: (said, number) => {
        view.take(said, number);
        if (said["type"] === "started") this.#started(said, view, body);
      },
      waiting: () => view.reconnecting(),
      connected: () => view.connected(),
      ended: (said) => {
        view.end(said);
        this.#sent(body);
        over();
        this.#announceEnd(said);
        this.#frame.tell("ended", { assistant: this.#assistant, exchange: view.exchange, outcome: said["outcome"] });
      },
      refused: (error) => {
        this.#refused(error, view, body, before);
        this.#sent(body);
        over();
      },
      lost: () => {
        const resume = () => {
          removeEventListener("online", resume);
          if (view.element.isConnected && !this.#answers.has(view) && !this.#gone.signal.aborted) {
            this.#resume(view, answer);
          }
        };
        addEventListener("online", resume, { signal: this.#gone.signal });
        this.#fail(view, "lost", "", resume); // what was not sent stays so: a reload sends it
        over();
      },
    };
    const answer = new Answer(this.#service, asked, this.#config.heartbeat, whileShown(view, tell));
    this.#run(view, answer);
  }

  #run(view: ExchangeView, answer: Answer): void {
    this.#answers.set(view, answer);
    this.#frame.busy(true);
    this.#frame.keepFocus();
    void answer.follow();
  }

  #resume(view: ExchangeView, answer: Answer): void {
    view.resume();
    this.#run(view, answer);
  }

  #announceEnd(said: Said): void {
    const outcome = String(said["outcome"]);
    if (outcome === "failed") {
      this.#frame.announce("alert", String(said["code"] ?? "failed"), String(said["message"] ?? ""));
    } else this.#frame.announce("status", outcome === "complete" ? "here" : outcome);
  }

  #refused({ status, error, message }: Refused, view: ExchangeView, body: Body | null, before: Row): void {
    // A conversation that is gone takes no further questions: the next one begins another.
    if (status === 404) this.#conversation.value = this.#latest.value = null;
    const named = typeof error.limit === "string" ? error.limit : String(error.code); // a field's limit is a number
    if (before.outcome !== null && before.outcome !== "failed" && status !== 404) {
      view.fill(before); // it was asked again, and has not been answered: it stands as it stood
      this.#frame.trouble(named, null, message);
      return;
    }
    const same = body !== null && status !== 404;
    this.#fail(view, named, message, () => (same ? this.#post(body, view) : this.#again(view)));
  }

  #fail(view: ExchangeView, name: string, told: string, retry: () => void): void {
    view.fail(name, told);
    this.#onRetry(view, retry);
    this.#frame.announce("alert", name, told);
  }

  #onRetry(view: ExchangeView, retry: () => void): void {
    view.retry = () => this.#wish(retry);
  }

  /** Ask once more: the new answer takes the old one's place, here and in later history. */
  #again(view: ExchangeView): void {
    this.#ask(view.question, view);
  }

  #started(said: Said, view: ExchangeView, body: Body | null): void {
    this.#onRetry(view, () => this.#again(view));
    this.#views.set(said["exchange"], view);
    const conversation = String(said["conversation"]);
    this.#conversation.value = this.#latest.value = conversation;
    this.#frame.parts.remove.hidden = false;
    if (body === null) return;
    this.#sent(body);
    const { message, replaces } = body;
    this.#frame.tell("asked", { assistant: this.#assistant, exchange: view.exchange });
    const news: News = { conversation, exchange: String(said["exchange"]), message, replaces };
    this.#others.post(news);
  }

  #newView(message: string): ExchangeView {
    const { speech, level, parts } = this.#frame;
    const wishes = {
      regenerate: (view: ExchangeView) => this.#wish(() => this.#again(view)),
      goOn: () => this.#wish(() => this.#ask(words(speech.language, "goOn"))),
      copied: () => {
        this.#frame.announce("status", "");
        this.#frame.announce("status", "copied");
      },
    };
    const view = new ExchangeView(message, speech, level, wishes, this.#image);
    this.#onRetry(view, () => this.#again(view));
    parts.exchanges.append(view.element);
    this.#frame.empty(false);
    this.#frame.keepFocus(); // what only the last answer offers is gone from the one before
    return view;
  }

  #wish(what: () => void): void {
    if (this.busy) return;
    this.#frame.focus(); // the button that has the focus goes
    this.#frame.trouble("");
    what();
  }

  // The conversation as the server has it

  /** Show what the server has and this page has not: after a reload, or after the page was asleep. */
  async #load(): Promise<void> {
    this.#frame.trouble("");
    const wanted = this.#conversation.value;
    if (wanted === null) return this.#askUnsent([]);
    this.#frame.empty(false);
    let rows: Row[] | null;
    try {
      const response = await this.#service.fetch(conversationPath(wanted), { cache: "no-store" });
      if (!response.ok && response.status !== 404) throw await refusal(response);
      rows = response.ok ? transcript(await response.json()) : null;
    } catch {
      if (!this.#gone.signal.aborted) this.#frame.trouble("load", () => void this.#load());
      return;
    }
    if (this.#gone.signal.aborted || wanted !== this.#conversation.value) return; // another was begun meanwhile
    if (rows === null) return this.forget();
    this.#frame.parts.remove.hidden = false;
    this.#showRows(rows);
    this.#askUnsent(rows);
  }

  /** Show rows that are not shown, and each in its place: a question may have been put before they came. */
  #showRows(rows: readonly Row[]): void {
    const { exchanges } = this.#frame.parts;
    const replaced = new Set(rows.map((row) => row.replaces));
    let place = exchanges.firstElementChild;
    for (const row of rows) {
      if (replaced.has(row.exchange)) continue;
      const { element } = this.#views.get(row.exchange) ?? this.#newRow(row);
      if (element !== place) exchanges.insertBefore(element, place);
      place = element.nextElementSibling;
    }
  }

  #newRow(row: Row): ExchangeView {
    const view = this.#views.get(row.replaces) ?? this.#newView(row.question);
    if (row.outcome === null) {
      this.#join(row.exchange, view);
      return view;
    }
    this.#views.set(row.exchange, view);
    view.fill(row);
    return view;
  }

  /** A question that was being posted when the page went may have arrived or not: posting it again is right both ways. */
  #askUnsent(rows: readonly Row[]): void {
    const kept = this.#left;
    this.#left = null;
    if (kept === null) return;
    const { body, at } = kept;
    if (rows.some((row) => row.key === body.key)) return this.#sent(body);
    const view = this.#views.get(body.replaces) ?? this.#newView(body.message);
    if (Date.now() - at < UNSENT) this.#post(body, view);
    else this.#fail(view, "unsent", "", () => this.#post(body, view));
  }

  // What happens around this page

  #hear(said: unknown): void {
    const { conversation, removed, exchange, message = "", replaces } = Object(said) as News;
    if (!isId(conversation) || conversation !== this.#conversation.value) return;
    if (removed === true) this.forget();
    else if (isId(exchange) && isText(message) && !this.#views.has(exchange)) {
      this.#join(exchange, this.#views.get(replaces) ?? this.#newView(message));
    }
  }

  #watch(): void {
    const { signal } = this.#gone;
    document.addEventListener(
      "visibilitychange",
      () => {
        if (own("hidden")) this.#hiddenAt = Date.now();
        else if (!this.busy && Date.now() - this.#hiddenAt > HIDDEN) void this.#load(); // what others said went unheard
      },
      { signal },
    );
    // A frozen page's stream may have died without its noticing.
    const refresh = () => {
      for (const answer of this.#answers.values()) answer.refresh();
    };
    document.addEventListener("resume", refresh, { signal });
    // A page that a browser keeps for the way back holds no connections.
    const hide = (event: PageTransitionEvent) => {
      if (!event.persisted) return;
      for (const answer of this.#answers.values()) answer.leave();
    };
    const show = (event: PageTransitionEvent) => {
      if (!event.persisted) return;
      for (const [view, answer] of this.#answers) this.#resume(view, answer);
      if (!this.busy) void this.#load();
    };
    addEventListener("pagehide", hide, { signal });
    addEventListener("pageshow", show, { signal });
  }
}

/** What becomes of an answer matters as long as it is shown: it may be told after another conversation was begun. */
function whileShown(view: ExchangeView, tell: Telling): Telling {
  const shown =
    <T extends unknown[]>(call: (...said: T) => void) =>
    (...said: T) => {
      if (view.element.isConnected) call(...said);
    };
  return {
    event: shown(tell.event),
    waiting: shown(tell.waiting),
    connected: shown(tell.connected),
    ended: shown(tell.ended),
    refused: shown(tell.refused),
    lost: shown(tell.lost),
  };
}

/** The rows of a transcript. Throws: Refused where it is none. */
function transcript(told: unknown): Row[] {
  const { exchanges } = Object(told) as { exchanges?: unknown };
  if (!Array.isArray(exchanges) || !exchanges.every(isRow)) throw impostor();
  return exchanges;
}

function conversationPath(conversation: string): string {
  return `api/conversations/${encodeURIComponent(conversation)}`;
}

/** Whether it is what `#post` keeps. */
function isUnsent(kept: unknown): kept is Unsent {
  const { body, at } = Object(kept) as Unsent;
  const { message, key, assistant, conversation = null, replaces = null } = Object(body) as Body;
  const question = isText(message) && isKey(key) && isText(assistant);
  return typeof at === "number" && question && [conversation, replaces].every((id) => id === null || isId(id));
}
