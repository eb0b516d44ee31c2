// One answer as it is followed: asked once under a key, read to its end whatever the network does, and stopped.

import { events, type StreamEvent } from "./decoder.ts";
import { impostor, Refused, refusal, type Service } from "./service.ts";

/** Seconds before each new try after a lost connection, always growing; after the last one it is given up. */
const PAUSES = [0.5, 1, 2, 4, 8, 16, 32, 64];

/** Seconds before a stop is posted again. By their end the server has given up an answer that nobody reads. */
const STOP_PAUSES = [0.5, 1, 2, 4, 8];

/** A stream silent for this many heartbeats is dead, though nobody said so. */
const SILENT_BEATS = 2.5;

/** The longest `Retry-After` that is waited for, in seconds. */
const AFTER_MOST = 30;

/** An answer event of the native protocol, as JSON has it: which fields it has, its `type` says. */
export type Said = Readonly<Record<string, unknown>>;

/** A question as it is posted. It has a key: posting it again joins the answer under way. */
export interface Body {
  readonly message: string;
  readonly key: string;
  readonly resumable: true;
  readonly assistant: string;
  readonly conversation?: string;
  readonly replaces?: string;
}

/** What is told of an answer, each only before its end; one of the last three is the last. */
export interface Telling {
  /** Every answer event but the end, once and in order. */
  event(said: Said, number: number): void;
  /** The connection was lost and will be tried again. */
  waiting(): void;
  /** There is a connection. */
  connected(): void;
  ended(said: Said): void;
  refused(error: Refused): void;
  /** It was given up; `follow` may be called again. */
  lost(): void;
}

/** An answer, followed. */
export class Answer {
  readonly #service: Service;
  readonly #body: Body | null;
  readonly #silence: number;
  readonly #tell: Telling;
  #exchange: string; // its id, "" until the server has said it
  #last = 0; // number of the last event
  #over = false;
  #turn = 0; // counts what was begun: whoever waits and finds another number has nothing more to do
  #abort: AbortController | null = null;
  #tries = 0; // since something was heard, or the network came back
  #again = false; // all was had but the end: hear the answer once more, for its end
  #wake: () => void = () => {};
  #offline = false; // the browser has said so, and nothing has been heard since

  /**
   * Made with `body`, the question, or with `exchange`, the id of an answer that somebody asked for already.
   * heartbeat: seconds after which a living server says something.
   */
  constructor(service: Service, asked: { body: Body } | { exchange: string }, heartbeat: number, tell: Telling) {
    this.#service = service;
    this.#body = "body" in asked ? asked.body : null;
    this.#exchange = "exchange" in asked ? asked.exchange : "";
    this.#silence = heartbeat * SILENT_BEATS * 1000;
    this.#tell = tell;
  }

  /** Ask or go on following, until the end, a refusal, or until it is given up or left. */
  async follow(): Promise<void> {
    const turn = ++this.#turn;
    this.#over = false;
    const offline = () => {
      this.#offline = true;
    };
    const online = () => {
      if (this.#offline) this.refresh();
      else this.#wake(); // a connection that lives is left alone
    };
    addEventListener("offline", offline);
    addEventListener("online", online);
    try {
      await this.#untilOver(turn);
    } finally {
      removeEventListener("offline", offline);
      removeEventListener("online", online);
    }
  }

  async #untilOver(turn: number): Promise<void> {
    this.#tries = 0;
    while (turn === this.#turn) {
      const before = this.#last;
      const again = this.#again;
      let after = 0;
      try {
        if (await this.#once(turn)) return;
        if (this.#again && !again) continue; // the answer is over and its end was not heard: read it from the start
      } catch (error) {
        if (turn !== this.#turn) return;
        if (error instanceof Refused && !error.passing) return this.#finish(() => this.#tell.refused(error));
        if (error instanceof Refused) after = Math.min(error.after, AFTER_MOST);
      }
      if (turn !== this.#turn) return;
      if (this.#last > before) this.#tries = 0;
      const pause = PAUSES[this.#tries++];
      if (pause === undefined) return this.#finish(() => this.#tell.lost());
      this.#tell.waiting();
      await this.#pause(pause + after);
    }
  }

  /** One connection. True when the end has come by it. Throws: Refused, and whatever the network throws. */
  async #once(turn: number): Promise<boolean> {
    const abort = new AbortController();
    this.#abort = abort;
    let heard = performance.now();
    const watch = setInterval(() => {
      if (performance.now() - heard > this.#silence) abort.abort();
    }, this.#silence / 5);
    try {
      const response = await this.#open(abort.signal);
      if (response.status === 204) this.#again = true;
      else if (!response.ok) throw await refusal(response);
      else if (response.body === null || !isStream(response)) throw impostor();
      else {
        if (turn === this.#turn) this.#tell.connected(); // else: an abort that did nothing
        const listening = () => {
          heard = performance.now();
          this.#offline = false;
        };
        for await (const event of events(response.body, listening)) if (this.#take(event, turn)) return true;
      }
      return false;
    } finally {
      clearInterval(watch);
    }
  }

  #open(signal: AbortSignal): Promise<Response> {
    if (this.#exchange === "") return this.#service.post("api/chat/stream", this.#body, { signal });
    const after = this.#again ? 0 : this.#last;
    const path = `api/exchanges/${encodeURIComponent(this.#exchange)}/events?after=${after}&resumable=true`;
    return this.#service.fetch(path, { signal, cache: "no-store", headers: { Accept: "text/event-stream" } });
  }

  /** Take one event of the stream; true when nothing more is wanted. */
  #take(event: StreamEvent, turn: number): boolean {
    if (turn !== this.#turn) return true;
    const number = Number(event.id.slice(event.id.lastIndexOf(".") + 1));
    const said = parsed(event.data);
    if (said === null || !(number > 0)) return false; // skipped, as everything unknown is
    if (said["type"] === "ended") {
      this.#last = Math.max(this.#last, number);
      this.#finish(() => this.#tell.ended(said));
      return true;
    }
    if (number <= this.#last) return false; // heard already: posted again, or sent again
    this.#last = number;
    if (said["type"] === "started") this.#exchange = String(said["exchange"]);
    this.#tell.event(said, number);
    return false;
  }

  #finish(tell: () => void): void {
    this.#over = true;
    tell();
  }

  /** Let go of the stream and ask for what is missing at once: the page was frozen, or the network is back. */
  refresh(): void {
    this.#offline = false;
    this.#tries = 0;
    this.#abort?.abort();
    this.#wake();
  }

  /** Let go of the stream without stopping: nothing more is told. `follow` goes on where it was. */
  leave(): void {
    this.#turn++;
    try {
      this.#abort?.abort();
    } catch {
      // the next event lets go of it
    }
    this.#wake();
  }

  /**
   * Stop: what is shown now is what was seen. The stream is let go and the stop is posted, whichever arrives.
   * An answer that had ended before the stop came is read to its end: the transcript has all of it. So is one that
   * was stopped before it was known where it belongs.
   */
  async stop(): Promise<void> {
    if (this.#over) return;
    const seen = this.#last;
    this.leave();
    const turn = this.#turn;
    this.#finish(() => this.#tell.ended({ type: "ended", outcome: "stopped", shown: seen }));
    const outcome = await this.#postStop(seen);
    if (turn !== this.#turn) return; // left meanwhile
    if (typeof outcome === "string" && (outcome !== "stopped" || this.#exchange === "")) await this.follow();
  }

  /** How the answer ended, as the server says; null where it knows none yet, or could not be reached. */
  async #postStop(seen: number): Promise<unknown> {
    const name = encodeURIComponent(this.#exchange || (this.#body?.key ?? ""));
    for (let tries = 0; ; tries++) {
      try {
        // keepalive: goes out though the page is being closed.
        const response = await this.#service.post(`api/exchanges/${name}/stop`, { seen }, { keepalive: true });
        if (response.ok) return ((await response.json()) as { outcome?: unknown }).outcome;
        if (response.status < 500 && response.status !== 408 && response.status !== 429) return null;
      } catch {
        // not reached
      }
      const pause = STOP_PAUSES[tries];
      if (pause === undefined) return null;
      await new Promise((done) => setTimeout(done, pause * 1000));
    }
  }

  #pause(seconds: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, seconds * 1000);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }
}

function isStream(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

function parsed(data: string): Said | null {
  try {
    const said: unknown = JSON.parse(data);
    return typeof said === "object" && said !== null ? (said as Said) : null;
  } catch {
    return null;
  }
}
