// What is kept in the browser. Where the browser keeps nothing (blocked, full), everything works until a reload.

type Where = "localStorage" | "sessionStorage";

const memory = new Map<string, unknown>(); // what the browser did not take

/**
 * A value under a name. fits: whether a value is one of ours: what another page of this origin, or another version of
 * this one, has left there must not keep us from working, at every visit from then on.
 */
export class Kept<T> {
  readonly #where: Where;
  readonly #name: string;
  readonly #fits: (kept: unknown) => kept is T;

  constructor(where: Where, name: string, fits: (kept: unknown) => kept is T) {
    this.#where = where;
    this.#name = `motamot ${name}`;
    this.#fits = fits;
  }

  /** The value, null for none; other pages may have changed it. */
  get value(): T | null {
    let kept: unknown = null;
    try {
      kept = JSON.parse(globalThis[this.#where].getItem(this.#name) ?? "null");
    } catch {
      // nothing is kept, or not what we wrote
    }
    if (!this.#fits(kept)) kept = memory.get(this.#key);
    return this.#fits(kept) ? kept : null;
  }

  set value(value: T | null) {
    memory.delete(this.#key);
    try {
      if (value === null) globalThis[this.#where].removeItem(this.#name);
      else globalThis[this.#where].setItem(this.#name, JSON.stringify(value));
    } catch {
      if (value !== null) memory.set(this.#key, value); // until a reload
    }
  }

  get #key(): string {
    return `${this.#where} ${this.#name}`;
  }
}

/** Whether it is text. */
export function isText(kept: unknown): kept is string {
  return typeof kept === "string";
}

/** Whether it may be an id that a server has given: what is longer it would refuse. */
export function isId(kept: unknown): kept is string {
  return typeof kept === "string" && /^[!-~]{1,200}$/.test(kept);
}

/**
 * A way to the other pages of this origin. There is none where a browser may keep nothing for a page: Firefox without
 * cookies refuses this, too.
 */
export class Channel {
  readonly #name: string;
  readonly #heard: (said: unknown) => void;
  #open: BroadcastChannel | null = null;

  /** heard: what one of them says, and any script of theirs may say anything. gone: when to stop listening. */
  constructor(name: string, heard: (said: unknown) => void, gone: AbortSignal) {
    this.#name = `motamot ${name}`;
    this.#heard = heard;
    this.#listen();
    gone.addEventListener("abort", () => this.#open?.close());
    // A page that a browser keeps for the way back hears nothing, and may hold nothing open.
    const hide = ({ persisted }: PageTransitionEvent) => {
      if (persisted) this.#open?.close();
    };
    const show = ({ persisted }: PageTransitionEvent) => {
      if (persisted) this.#listen();
    };
    addEventListener("pagehide", hide, { signal: gone });
    addEventListener("pageshow", show, { signal: gone });
  }

  /** Say something to them. */
  post(said: object): void {
    this.#open?.postMessage(said);
  }

  #listen(): void {
    try {
      this.#open = new BroadcastChannel(this.#name);
      this.#open.addEventListener("message", ({ data }: MessageEvent<unknown>) => this.#heard(data));
    } catch {
      this.#open = null;
    }
  }
}
