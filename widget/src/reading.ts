// How somebody reads best: ground, contrast, size and room between lines. Kept once for all pages of an origin, and
// applied at once wherever a chat of that origin is open.

import { Channel, Kept } from "./keep.ts";

/** What there is to choose from, each with its usual value first. */
export const CHOICES = {
  ground: ["plain", "cream", "tinted"],
  contrast: ["normal", "high"],
  size: ["100", "125", "150", "175", "200"], // percent
  lines: ["normal", "wide"],
} as const;

export type Part = keyof typeof CHOICES;

/** What was chosen; a part that is missing is as the site has it. */
export type Reading = { readonly [P in Part]?: (typeof CHOICES)[P][number] };

const PARTS = Object.keys(CHOICES) as Part[];
const NAME = "reading";
const MORE_CONTRAST = "(prefers-contrast: more)";

/**
 * What the reader has chosen.
 *
 * changed: is called when it was chosen, here or in any other chat of this origin. gone: when to stop listening.
 */
export class ReadingChoice {
  readonly #kept = new Kept("localStorage", NAME, isReading);
  readonly #changed: () => void;
  readonly #others: Channel;
  #value: Reading;

  constructor(changed: () => void, gone: AbortSignal) {
    this.#changed = changed;
    this.#value = this.#kept.value ?? {};
    const heard = (said: unknown) => {
      if (isReading(said)) this.#take(said);
    };
    this.#others = new Channel(NAME, heard, gone);
    matchMedia(MORE_CONTRAST).addEventListener("change", changed, { signal: gone });
    const show = ({ persisted }: PageTransitionEvent) => {
      if (persisted) this.#take(this.#kept.value ?? {}); // what others said went unheard
    };
    addEventListener("pageshow", show, { signal: gone });
  }

  get value(): Reading {
    return this.#value;
  }

  set value(value: Reading) {
    this.#kept.value = value;
    this.#others.post(value); // the others do not read it from the storage: that may be blocked
    this.#take(value);
  }

  #take(value: Reading): void {
    this.#value = value;
    this.#changed();
  }
}

/** Let a chat look as its reader wants it: its styles know these attributes. */
export function apply(reading: Reading, chat: HTMLElement): void {
  for (const part of PARTS) {
    const chosen = reading[part] ?? usual(part);
    if (chosen === CHOICES[part][0]) delete chat.dataset[part];
    else chat.dataset[part] = chosen;
  }
}

/** What holds as long as nothing is chosen: who asks the system for contrast gets it here, too. */
export function usual(part: Part): string {
  return part === "contrast" && matchMedia(MORE_CONTRAST).matches ? "high" : CHOICES[part][0];
}

function isReading(kept: unknown): kept is Reading {
  if (typeof kept !== "object" || kept === null) return false;
  const said = kept as Record<string, unknown>;
  return PARTS.every((part) => said[part] === undefined || (CHOICES[part] as readonly unknown[]).includes(said[part]));
}
