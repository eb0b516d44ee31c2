// What a server says of itself before anybody asks: who answers, and what a client must know to ask.

import type { Assistant } from "./frame.ts";
import { isText } from "./keep.ts";

/** The longest heartbeat that is waited for, in seconds: timers count milliseconds in 31 bits. */
const HEARTBEAT_MOST = 86_400;

export interface Config {
  readonly assistants: readonly Assistant[];
  /** Seconds after which a living server says something. */
  readonly heartbeat: number;
  /** How long a question may be, in bytes. */
  readonly message_bytes: number;
}

/** Whether it is that: at a wrong address, or behind a hotel's sign-in page, something else may answer in JSON. */
export function isConfig(told: unknown): told is Config {
  const { assistants, heartbeat, message_bytes } = Object(told) as Record<keyof Config, unknown>;
  const numbers = Number(heartbeat) > 0 && Number(heartbeat) <= HEARTBEAT_MOST && Number(message_bytes) > 0;
  return numbers && Array.isArray(assistants) && assistants.every(isAssistant);
}

function isAssistant(told: unknown): told is Assistant {
  const { name, title, marks } = Object(told) as Record<keyof Assistant, unknown>;
  return isText(name) && isText(title) && Array.isArray(marks) && marks.every(isText);
}
