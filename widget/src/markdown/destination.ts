// What follows the text of a link in its brackets.

import { dereference, REFERENCE } from "./entities.ts";
import { ADDRESS } from "./limits.ts";

/** What stands somewhere: "wait", if more has to come to tell; null, if it does not. */
export type Found<T> = T | "wait" | null;

/** What a backslash may stand before. Source: CommonMark 0.31.2, §2.4. */
export const ESCAPABLE = /[!-/:-@[-`{-~]/;

const NESTED = 32; // brackets in an address, as in CommonMark's reference implementations
/** A backslash before what it may be before, or a reference. */
const ESCAPED = new RegExp(`\\\\(${ESCAPABLE.source})|${REFERENCE.source}`, "g");
const BLANK = /[ \t\n]*/y;
const POINTED = /<((?:[^<>\\\n]|\\.)*)>/y;
const TITLE = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|\((?:[^()\\]|\\[^])*\)/y;

/**
 * What a link leads to, and where it ends: `(address "title")`, at its bracket. A title is read, and not shown.
 * Source: CommonMark 0.31.2, §6.3.
 */
export function destination(source: string, at: number): Found<{ address: string; end: number }> {
  if (at === source.length) return "wait";
  if (source[at] !== "(") return null;
  const text = source.slice(at, at + ADDRESS);
  const more = text.length < ADDRESS ? "wait" : null;
  const skip = (from: number, what: RegExp): number => {
    what.lastIndex = from;
    return what.test(text) ? what.lastIndex : from;
  };
  const from = skip(1, BLANK);
  if (from === text.length) return more;
  let to = text[from] === "<" ? skip(from, POINTED) : bareEnd(text, from);
  if (to === text.length) return more;
  if (text[from] === "<" && to === from) return /[\n<]/.test(text.slice(from + 1).replace(/\\./g, "")) ? null : more;
  const raw = text[from] === "<" ? text.slice(from + 1, to - 1) : text.slice(from, to);
  const blank = skip(to, BLANK);
  if (blank === text.length) return more;
  if (blank > to && /["'(]/.test(text[blank] as string)) {
    to = skip(blank, TITLE);
    if (to === blank) return more;
    to = skip(to, BLANK);
    if (to === text.length) return more;
  } else to = blank;
  if (text[to] !== ")") return null;
  const address = raw.replace(ESCAPED, (found, escaped: string | undefined) => escaped ?? dereference(found));
  return { address, end: at + to + 1 };
}

/** The end of an address without pointed brackets: a space, or the bracket that it has not opened. */
function bareEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const character = text[at] as string;
    if (character === "\\" && ESCAPABLE.test(text[at + 1] ?? "")) at++;
    else if (character <= " " || character === "\x7f") return at;
    else if (character === "(" && ++depth > NESTED) return at;
    else if (character === ")" && --depth < 0) return at;
  }
  return text.length;
}
