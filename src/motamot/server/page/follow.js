// One answer as this page follows it: asked once under a key, read to its end whatever the network does, and stopped.

import { events } from "./reader.js";

/** Seconds before each new try after a lost connection, always growing; after the last one it is given up. */
const PAUSES = [0.5, 1, 2, 4, 8, 16, 32, 64];

/** Seconds before a stop is posted again. By their end the server has given up an answer that nobody reads. */
const STOP_PAUSES = [0.5, 1, 2, 4, 8];

/** A stream silent for this many heartbeats is dead, though nobody said so. */
const SILENT_BEATS = 2.5;

/** The longest `Retry-After` that is waited for, in seconds. */
const AFTER_MOST = 30;

/** What a server said no to. error: `{code, message, limit?}`, as it says it; after: seconds, where it names them. */
export class Refused extends Error {
  constructor(status, error, after) {
    super(error.message);
    this.status = status;
    this.error = error;
    this.after = after;
  }

  /** Whether trying again may help without anybody's doing: 4xx is an answer, not an accident. */
  get passing() {
    return this.status >= 500;
  }
}

/** The server's refusal in a response, or words of our own where it has none (a proxy's page). */
export async function refusal(response) {
  let error = null;
  try {
    error = (await response.json()).error;
  } catch {
    // not our shape
  }
  const told = error !== null && typeof error === "object" && typeof error.message === "string";
  const after = Number(response.headers.get("retry-after")) || 0;
  return new Refused(response.status, told ? error : { code: "unknown", message: "" }, after);
}

/** 128 random bits. (`crypto.randomUUID` is missing where a page came over plain HTTP.) */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * An answer, followed.
 *
 * Made with `body`, the question as it is posted (it has a key: posting it again joins the answer under way, so that
 * trying again never asks twice), or with `exchange`, the id of an answer that somebody asked for already.
 * `tell` hears, each only before the end: `event(said)` for every answer event but the end, once and in order;
 * `waiting()` when the connection was lost and will be tried again, `connected()` when there is one; and last one of `ended(said)`, `refused(error)`,
 * and `lost()` when it was given up (`follow` may then be called again).
 */
export class Answer {
  exchange = "";
  last = 0; // number of the last event
  over = false;
  #api;
  #body;
  #silence;
  #tell;
  #abort = null;
  #stopped = false;
  #again = false; // all was had but the end: hear the answer once more, for its end
  #wake = () => {};
  #offline = false; // the browser has said so, and nothing has been heard since

  constructor(api, { body = null, exchange = "", heartbeat = 15, tell }) {
    this.#api = api;
    this.#body = body;
    this.exchange = exchange;
    this.#silence = heartbeat * SILENT_BEATS * 1000;
    this.#tell = tell;
  }

  /** Ask or go on following, until the end, a refusal, or until it is given up. */
  async follow() {
    this.over = false;
    const offline = () => (this.#offline = true);
    const online = () => this.#online();
    addEventListener("offline", offline);
    addEventListener("online", online);
    try {
      await this.#untilOver();
    } finally {
      removeEventListener("offline", offline);
      removeEventListener("online", online);
    }
  }

  async #untilOver() {
    let tries = 0;
    while (!this.#stopped) {
      const before = this.last;
      const again = this.#again;
      let after = 0;
      try {
        if (await this.#once()) return;
        if (this.#again && !again) continue; // the answer is over and its end was not heard: read it from the start
      } catch (error) {
        if (this.#stopped) return;
        if (error instanceof Refused && !error.passing) return this.#finish(() => this.#tell.refused(error));
        if (error instanceof Refused) after = Math.min(error.after, AFTER_MOST);
      }
      if (this.#stopped) return;
      if (this.last > before) tries = 0;
      if (tries === PAUSES.length) return this.#finish(() => this.#tell.lost());
      this.#tell.waiting();
      await this.#pause(PAUSES[tries++] + after);
    }
  }

  /** One connection. True when the end has come by it. Throws: Refused, and whatever the network throws. */
  async #once() {
    this.#abort = new AbortController();
    let heard = performance.now();
    const watch = setInterval(() => {
      if (performance.now() - heard > this.#silence) this.#abort.abort();
    }, this.#silence / 5);
    try {
      const response = await this.#open(this.#abort.signal);
      if (response.status === 204) this.#again = true;
      else if (!response.ok) throw await refusal(response);
      else if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
        throw new Refused(502, { code: "unknown", message: "" }, 0); // somebody else's page in our server's place
      } else {
        if (!this.#stopped) this.#tell.connected(); // an abort that did nothing
        const listening = () => {
          heard = performance.now();
          this.#offline = false;
        };
        for await (const event of events(response.body, listening)) if (this.#take(event)) return true;
      }
      return false;
    } finally {
      clearInterval(watch);
    }
  }

  #open(signal) {
    if (this.exchange === "") return post(`${this.#api}chat/stream`, this.#body, { signal });
    const after = this.#again ? 0 : this.last;
    const url = `${this.#api}exchanges/${encodeURIComponent(this.exchange)}/events?after=${after}&resumable=true`;
    return fetch(url, { signal, cache: "no-store", headers: { Accept: "text/event-stream" } });
  }

  /** Take one event of the stream; true when nothing more is wanted. */
  #take(event) {
    if (this.#stopped) return true;
    const number = Number(event.id.slice(event.id.lastIndexOf(".") + 1));
    let said = null;
    try {
      said = JSON.parse(event.data);
    } catch {
      // skipped, as everything unknown is
    }
    if (said === null || typeof said !== "object" || !(number > 0)) return false;
    if (said.type === "ended") {
      this.last = Math.max(this.last, number);
      this.#finish(() => this.#tell.ended(said));
      return true;
    }
    if (number <= this.last) return false; // heard already: posted again, or sent again
    this.last = number;
    if (said.type === "started") this.exchange = said.exchange;
    this.#tell.event(said, number);
    return false;
  }

  #finish(tell) {
    this.over = true;
    tell();
  }

  /**
   * Stop: what is shown now is what was seen. The stream is let go and the stop is posted, whichever arrives.
   * An answer that had ended before the stop came is read to its end: the transcript has all of it. So is one that
   * was stopped before it was known where it belongs.
   */
  async stop() {
    if (this.over) return;
    this.#stopped = true;
    const seen = this.last;
    try {
      this.#abort?.abort();
    } catch {
      // the post says it too
    }
    this.#wake();
    this.#finish(() => this.#tell.ended({ type: "ended", outcome: "stopped", shown: seen }));
    const outcome = await this.#postStop(seen);
    if (typeof outcome !== "string" || (outcome === "stopped" && this.exchange !== "")) return;
    this.#stopped = false;
    await this.follow();
  }

  /** How the answer ended, as the server says; null where it knows none yet, or could not be reached. */
  async #postStop(seen) {
    const name = encodeURIComponent(this.exchange || this.#body.key);
    for (let tries = 0; ; tries++) {
      try {
        // keepalive: goes out though the page is being closed.
        const response = await post(`${this.#api}exchanges/${name}/stop`, { seen }, { keepalive: true });
        if (response.ok) return (await response.json()).outcome;
        if (response.status < 500 && response.status !== 408 && response.status !== 429) return null;
      } catch {
        // not reached
      }
      if (tries === STOP_PAUSES.length) return null;
      await new Promise((done) => setTimeout(done, STOP_PAUSES[tries] * 1000));
    }
  }

  #pause(seconds) {
    return new Promise((done) => {
      const timer = setTimeout(done, seconds * 1000);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  /** The network is back: don't wait for the next try, nor for a connection that died meanwhile to be missed. */
  #online() {
    if (this.#offline) this.#abort?.abort();
    this.#offline = false;
    this.#wake();
  }
}

function post(url, body, options) {
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream, application/json" };
  return fetch(url, { method: "POST", cache: "no-store", headers, body: JSON.stringify(body), ...options });
}
