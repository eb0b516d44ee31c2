// The chat's server: where it is, who asks it, and what it says no to.

import { Kept } from "./keep.ts";

/** What a server said no to. error: `{code, message, limit?}`, as it says it. */
export class Refused extends Error {
  readonly status: number;
  readonly error: Refusal;
  /** Seconds after which it may be tried again, where the server names them, else 0. */
  readonly after: number;

  constructor(status: number, error: Refusal, after = 0) {
    super(error.message);
    this.status = status;
    this.error = error;
    this.after = after;
  }

  /** Whether trying again may help without anybody's doing: 4xx is an answer, not an accident. */
  get passing(): boolean {
    return this.status >= 500;
  }
}

/** As the server says it. limit: a limit's name, or for a field the number it may have at most. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly limit?: string | number;
}

const UNKNOWN: Refusal = { code: "unknown", message: "" };

/** The server's refusal in a response, or words of our own where it has none (a proxy's page). */
export async function refusal(response: Response): Promise<Refused> {
  let error: unknown = null;
  try {
    error = ((await response.json()) as { error?: unknown }).error;
  } catch {
    // not our shape
  }
  const after = Number(response.headers.get("retry-after")) || 0;
  return new Refused(response.status, isRefusal(error) ? error : UNKNOWN, after);
}

/** Somebody else's answer in our server's place. */
export function impostor(): Refused {
  return new Refused(502, UNKNOWN);
}

function isRefusal(error: unknown): error is Refusal {
  return typeof error === "object" && error !== null && typeof (error as Refusal).message === "string";
}

/** 128 random bits. (`crypto.randomUUID` is missing where a page came over plain HTTP.) */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether it is what `newKey` makes. */
export function isKey(kept: unknown): kept is string {
  return typeof kept === "string" && /^[0-9a-f]{32}$/.test(kept);
}

/**
 * A server, as a page asks it.
 *
 * On the server's own pages the visitor is known by the server's cookie, or by the site's own login. On pages of other
 * sites, where browsers keep no cookie of ours, by a secret of 128 bits that is kept in the page's own storage.
 */
export class Service {
  /** Where it is; ends with a slash. */
  readonly base: string;
  /** Its name in the browser's storage. */
  readonly place: string;
  readonly foreign: boolean;
  #secret = "";

  constructor(base: URL) {
    const folder = new URL(".", base);
    this.base = folder.href;
    this.foreign = folder.origin !== globalThis.origin;
    this.place = this.foreign ? folder.href : folder.pathname;
  }

  /** GET, or another method. path: below the server's address. */
  fetch(path: string, { headers = {}, ...options }: Options = {}): Promise<Response> {
    const who: RequestInit = this.foreign
      ? { credentials: "omit", headers: { ...headers, Authorization: `Bearer ${this.#known()}` } }
      : { credentials: "same-origin", headers };
    return fetch(this.base + path, { referrerPolicy: "no-referrer", ...options, ...who });
  }

  /** POST as JSON, which another site's form can't. */
  post(path: string, body: unknown, options: Options = {}): Promise<Response> {
    const headers = { "Content-Type": "application/json", Accept: "text/event-stream, application/json" };
    return this.fetch(path, { method: "POST", cache: "no-store", headers, body: JSON.stringify(body), ...options });
  }

  /** What it has to say before anybody asks; nobody need be known for it. */
  public(path: string, options: Options = {}): Promise<Response> {
    return fetch(this.base + path, { referrerPolicy: "no-referrer", credentials: this.foreign ? "omit" : "same-origin", ...options });
  }

  #known(): string {
    if (this.#secret === "") {
      const kept = new Kept("localStorage", `${this.place} secret`, isKey);
      kept.value ??= newKey();
      this.#secret = kept.value ?? newKey();
    }
    return this.#secret;
  }
}

interface Options extends Omit<RequestInit, "headers" | "credentials"> {
  headers?: Record<string, string>;
}
