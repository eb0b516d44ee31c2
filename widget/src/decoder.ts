// Server-sent events to the letter, as motamot.sse reads them: bytes in, events out, wherever the bytes were cut.
// Source: WHATWG HTML, "Server-sent events", sections "Parsing an event stream" and "Interpreting an event stream".
// A stream is read with fetch and not with EventSource, which can neither ask with POST nor be told when to stop trying.

/** Characters (UTF-16 units) that one block may hold: a whole answer of 4 MiB that JSON writes as six each. */
export const EVENT_CHARACTERS = 1 << 25;

/** A block held more than the decoder takes: nothing from it on was read. */
export class TooLong extends Error {}

/** An event: its type ("message" by default), its data, and the last id at its dispatch. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

/** Reads one event stream. A stream after a reconnection gets a new decoder. */
export class Decoder {
  /** As a reconnection would send it: the id at the last blank line, "" before any. */
  lastEventId = "";
  /** Milliseconds, the last valid one, or null. */
  retry: number | null = null;
  readonly #utf8 = new TextDecoder("utf-8", { ignoreBOM: true }); // not fatal: bad bytes become U+FFFD
  readonly #most: number;
  #started = false; // the byte-order mark, if there was one, is behind us
  #over = false;
  #tail = ""; // the unfinished line
  #skipLf = false; // the last character was CR: an LF now belongs to it
  #data: string | null = null; // the data buffer without its last LF
  #event = "";
  #id = "";

  /** most: characters that one block may hold. */
  constructor({ most = EVENT_CHARACTERS } = {}) {
    this.#most = most;
  }

  /**
   * The events that these bytes complete, in order.
   * bytes: of any length; may cut a line, a CRLF or a character anywhere.
   * Throws TooLong where an earlier call met a block that is too long; that call gave the events before it.
   */
  feed(bytes: Uint8Array): StreamEvent[] {
    if (this.#over) throw new TooLong(`an event of the stream holds more than ${this.#most} characters`);
    const text = this.#decode(bytes);
    const events: StreamEvent[] = [];
    if (text === "") return events;
    let from = 0;
    if (this.#skipLf && text[0] === "\n") from = 1;
    this.#skipLf = text.endsWith("\r"); // the line ends at once: waiting for its LF would hold an event back
    const ends = /\r\n|\r|\n/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      // What was searched already is not searched again: a long line in many pieces stays linear.
      this.#line(this.#tail + text.slice(from, end.index), events);
      if (this.#over) return events;
      this.#tail = "";
      from = ends.lastIndex;
    }
    this.#tail += text.slice(from);
    if (this.#held() + this.#tail.length > this.#most) this.#over = true;
    return events;
  }

  /** One mark at the very start is dropped here: Node (24) drops a second one, too, where the first was cut. */
  #decode(bytes: Uint8Array): string {
    const text = this.#utf8.decode(bytes, { stream: true });
    if (this.#started || text === "") return text;
    this.#started = true;
    return text[0] === "\uFEFF" ? text.slice(1) : text;
  }

  #held(): number {
    return (this.#data ?? "").length + this.#event.length;
  }

  #line(line: string, events: StreamEvent[]): void {
    if (line === "") return this.#dispatch(events);
    if (this.#held() + line.length > this.#most) {
      this.#over = true; // counted with its field name, finished or not: the same at every cut
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    else if (field === "event") this.#event = value;
    else if (field === "id") {
      if (!value.includes("\0")) this.#id = value;
    } else if (field === "retry" && /^[0-9]{1,300}$/.test(value)) this.retry = Number(value);
  }

  #dispatch(events: StreamEvent[]): void {
    this.lastEventId = this.#id;
    if (this.#data !== null) events.push({ event: this.#event || "message", data: this.#data, id: this.#id });
    this.#data = null;
    this.#event = "";
  }
}

/**
 * The events of a response's body, as they come; an unterminated one at its end is discarded, as the standard says.
 * heard: called for every piece of bytes, comments too.
 * Throws: what reading the body throws, and TooLong.
 */
export async function* events(
  body: ReadableStream<Uint8Array>,
  heard: () => void = () => {},
): AsyncGenerator<StreamEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new Decoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      yield* decoder.feed(value);
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection is let go wherever the caller stopped reading
  }
}
