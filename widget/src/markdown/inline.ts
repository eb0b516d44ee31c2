// What stands within a paragraph, a heading or a cell: emphasis, code, links. See parser.ts for the rules of both.

import { harmless } from "./address.ts";
import { destination, ESCAPABLE, type Found } from "./destination.ts";
import { dereference, REFERENCE, REFERENCE_BEGUN } from "./entities.ts";
import { ADDRESS, BRACKETS, EMPHASIS, HELD, INLINES, RUN, SPAN } from "./limits.ts";
import type { Renderer } from "./renderer.ts";

/** No character with a meaning, or an `h` within a word. */
const PLAIN = /(?:[^\\`*_~[\]!<&\nhH]|(?<=[\p{L}\p{N}])[hH])+/uy;
const SPACE = /\s/u;
const CODE_SPACE = /[ \n]/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const WORD = /[\p{L}\p{N}]/u;
const AUTOLINK = /<(?:(https?:\/\/|mailto:)[^\s<>]*|[\w.!#$%&'*+/=?^`{|}~-]+@[a-z\d-]+(?:\.[a-z\d-]+)*)>/iy;
const AUTOLINK_BEGUN = /<[^\s<>]*$/y;
const LEADS = /^\([hm<&\\\s]/i;
const SCHEME = /https?:\/\/[\p{L}\p{N}]/iuy;
const SCHEME_BEGUN = /h(?:t(?:t(?:p(?:s?|s?:|s?:\/|s?:\/\/))?)?)?$/iy;
const SCHEMES = 8; // "https://"
const URL_END = /[\s<>\\`[\]\p{Cc}\p{Cf}\p{Z}]|(?![!-~])\p{P}/u;
const AMPERSAND = "&amp;";
const URL_TAIL = /[?!.,:;*_~'")]/; // part of an address unless nothing else follows: GFM 0.29, §6.9

/** Something that may yet close: a run of marks, or a bracket. */
interface Open<N> {
  readonly mark: string; // "*", "_", "~", "[" or "!["
  readonly length: number; // of the whole run
  readonly closes: boolean; // the run might have closed another one
  readonly at: number; // text written before it
  left: number; // marks that nothing has closed
  places: N[]; // outermost first; none: a bracket that is text, and whose partner is
}

/** Code, or an address written as such, whose end has not come: read again from its beginning if it never does. */
interface Span<N> {
  readonly kind: "code" | "address";
  readonly place: N;
  readonly length: number; // of the opening run
  read: number; // units from its beginning
  good: number; // an address: so many are surely part of it
  shown: number; // an address: of these
  brackets: number; // an address: round ones open
  padded: boolean; // code: a space came first and is not shown yet
  filled: boolean; // code: there is something but spaces
}

/** Reads the text of one block after the other. */
export class Inline<N> {
  readonly #renderer: Renderer<N>;
  #block: N | null = null;
  #rest = ""; // what is not decided yet
  #before = "\n"; // the character before it
  #final = false; // nothing more comes
  #stack: Open<N>[] = [];
  #span: Span<N> | null = null;
  #text = ""; // written, and not yet given to the renderer
  #written = 0; // units of text in this block
  #literal = ""; // a run of this mark goes on as text

  constructor(renderer: Renderer<N>) {
    this.#renderer = renderer;
  }

  /** The block that comes next. */
  begin(block: N): void {
    this.#block = block;
    this.#before = "\n";
    this.#written = 0;
  }

  /** More of its text: any slice that does not cut a surrogate pair. */
  write(text: string): void {
    this.#rest += text;
    this.#read();
  }

  /** The block is over: what is open closes or is the text that it was. */
  end(): void {
    this.#final = true;
    this.#read();
    this.#give(0);
    this.#final = false;
    this.#block = null;
    this.#rest = this.#literal = "";
  }

  #read(): void {
    let at = 0;
    while (at < this.#rest.length) {
      const next = this.#span === null ? this.#step(at) : this.#goOn(this.#span, at);
      if (next < 0) break;
      if (next > at) {
        const low = this.#rest.charCodeAt(next - 1);
        this.#before = this.#rest.slice(next - (low >= 0xdc00 && low < 0xe000 && next > 1 ? 2 : 1), next);
      }
      at = next;
    }
    this.#rest = this.#rest.slice(at);
    this.#flush();
  }

  /** Read one thing. Returns: where the next one begins, or -1 if more has to come first. */
  #step(at: number): number {
    const rest = this.#rest;
    PLAIN.lastIndex = at;
    const plain = PLAIN.test(rest);
    if (plain || rest[at] !== this.#literal) this.#literal = "";
    if (plain) return this.#say(rest, at, PLAIN.lastIndex);
    const mark = rest[at] as string;
    switch (mark) {
      case "\\":
        return this.#escape(at);
      case "`":
      case "*":
      case "_":
      case "~":
        return this.#run(mark, at);
      case "[":
        return this.#bracket("[", at);
      case "!":
        if (at + 1 === rest.length) return this.#final ? this.#say(rest, at, at + 1) : -1;
        return rest[at + 1] === "[" ? this.#bracket("![", at) : this.#say(rest, at, at + 1);
      case "]":
        return this.#unbracket(at);
      case "<":
        return this.#autolink(at);
      case "&":
        return this.#reference(at);
      case "\n": // is not part of the block if nothing follows
        if (at + 1 < rest.length) return this.#say(rest, at, at + 1);
        return this.#final ? at + 1 : -1;
      default:
        return this.#bare(at);
    }
  }

  // Text

  #say(source: string, from: number, to: number): number {
    this.#put(source.slice(from, to));
    return to;
  }

  /** Write text, and let go of what has been open for too long: at the same place, however the text comes. */
  #put(text: string): void {
    for (let oldest = this.#stack[0]; oldest !== undefined; oldest = this.#stack[0]) {
      const room = Math.max(oldest.at + (oldest.mark.endsWith("[") ? SPAN : EMPHASIS) - this.#written, 0);
      if (text.length <= room) break;
      this.#text += text.slice(0, room);
      this.#written += room;
      text = text.slice(room);
      this.#drop(0);
    }
    this.#text += text;
    this.#written += text.length;
  }

  #flush(): void {
    if (this.#text !== "") this.#renderer.text(this.#place(), this.#text);
    this.#text = "";
  }

  #place(): N {
    for (let index = this.#stack.length - 1; index >= 0; index--) {
      const place = this.#stack[index]?.places.at(-1);
      if (place !== undefined) return place;
    }
    return this.#block as N;
  }

  #escape(at: number): number {
    const next = this.#rest[at + 1];
    if (next === undefined || (next === "\n" && at + 2 === this.#rest.length)) {
      return this.#final ? this.#say(this.#rest, at, at + 1) : -1;
    }
    if (next === "\n") return at + 1; // a hard break is a line end like any other: all of them stay
    return ESCAPABLE.test(next) ? this.#say(this.#rest, at + 1, at + 2) : this.#say(this.#rest, at, at + 1);
  }

  #reference(at: number): number {
    const found = this.#match(REFERENCE, REFERENCE_BEGUN, HELD, at);
    if (found === "wait") return -1;
    if (found === null) return this.#say(this.#rest, at, at + 1);
    this.#put(dereference(found[0]));
    return at + found[0].length;
  }

  /** What stands here, or whether it may only just begin here. */
  #match(whole: RegExp, begun: RegExp, limit: number, at: number): Found<RegExpExecArray> {
    whole.lastIndex = begun.lastIndex = at;
    const found = whole.exec(this.#rest);
    if (found !== null) return found[0].length <= limit ? found : null;
    const possible = !this.#final && this.#rest.length - at <= limit && begun.test(this.#rest);
    return possible ? "wait" : null;
  }

  // Runs of marks

  #run(mark: string, at: number): number {
    const rest = this.#rest;
    let end = at;
    while (rest[end] === mark) end++;
    const length = end - at;
    if (this.#literal === mark || length > RUN) {
      this.#literal = mark;
      return this.#say(rest, at, end);
    }
    if (end === rest.length && !this.#final) return -1;
    if (mark === "`") return this.#code(at, end);
    if (mark === "~" && length !== 2) return this.#say(rest, at, end);
    const { opens, closes } = this.#flanking(mark, end);
    const left = closes ? this.#close(mark, length, opens) : length;
    if (left === 0) return end;
    if (opens && closes && mark === "*" && left === length) {
      const likely = this.#closedSoon(mark, end);
      if (likely === "wait") return -1;
      if (likely === null) return this.#say(rest, at, end);
    }
    if (opens) this.#open(mark, left, length, closes);
    else this.#put(mark.repeat(left));
    return end;
  }

  /** Source: CommonMark 0.31.2, §6.2, rules 1 to 8. */
  #flanking(mark: string, end: number): { opens: boolean; closes: boolean } {
    const code = this.#rest.codePointAt(end);
    const after = code === undefined ? "\n" : String.fromCodePoint(code);
    const [spaceBefore, spaceAfter] = [SPACE.test(this.#before), SPACE.test(after)];
    const [markBefore, markAfter] = [PUNCTUATION.test(this.#before), PUNCTUATION.test(after)];
    const left = !spaceAfter && (!markAfter || spaceBefore || markBefore);
    const right = !spaceBefore && (!markBefore || spaceAfter || markAfter);
    if (mark !== "_") return { opens: left, closes: right };
    return { opens: left && (!right || markBefore), closes: right && (!left || markAfter) };
  }

  /** Within a word (`2*3`), an emphasis only begins if it may end soon: else all that follows would lean till then. */
  #closedSoon(mark: string, from: number): Found<true> {
    const end = this.#rest.indexOf(mark, from);
    if (end >= 0 && end - from <= HELD) return true;
    return this.#rest.length - from > HELD || this.#final ? null : "wait";
  }

  #open(mark: string, left: number, length: number, closes: boolean): void {
    this.#room();
    const places: N[] = [];
    const entry = { mark, length, closes, at: this.#written, left, places };
    if (mark === "~") this.#enter(entry, "strike");
    else {
      if (left % 2 === 1) this.#enter(entry, "emphasis");
      for (let pairs = left >> 1; pairs > 0; pairs--) this.#enter(entry, "strong");
    }
  }

  #enter(entry: Open<N>, kind: "emphasis" | "strong" | "strike" | "link"): void {
    this.#flush();
    const place = this.#renderer.open(this.#place(), kind, "");
    if (entry.places.push(place) === 1) this.#stack.push(entry);
  }

  /** Let go of the one that has waited longest, if there are as many as may be. */
  #room(): void {
    if (this.#stack.length >= INLINES) this.#drop(0);
  }

  /** Close what a run closes. Returns: how many of its marks are left. */
  #close(mark: string, length: number, opens: boolean): number {
    let left = length;
    while (left > 0) {
      const index = this.#opener(mark, length, opens);
      const entry = this.#stack[index];
      if (entry === undefined) break;
      this.#give(index + 1);
      const used = entry.left >= 2 && left >= 2 ? 2 : 1;
      if (used === 1 && entry.left > 1) this.#closeOne(entry);
      else entry.places.pop();
      entry.left -= used;
      left -= used;
      if (entry.left === 0) this.#stack.pop();
    }
    return left;
  }

  /** Source: CommonMark 0.31.2, §6.2, rules 9 and 10. What is within a bracket does not close what is before it. */
  #opener(mark: string, length: number, opens: boolean): number {
    for (let index = this.#stack.length - 1; index >= 0; index--) {
      const entry = this.#stack[index] as Open<N>;
      if (entry.mark.endsWith("[") && entry.places.length > 0) break;
      if (entry.mark !== mark) continue;
      const odd = mark !== "~" && (entry.closes || opens) && (entry.length + length) % 3 === 0;
      if (!odd || (entry.length % 3 === 0 && length % 3 === 0)) return index;
    }
    return -1;
  }

  /** Only one mark of several closes: the strong that was begun was an emphasis, and the rest is one mark more. */
  #closeOne(entry: Open<N>): void {
    this.#flush();
    const inner = entry.places.pop() as N;
    const [outer] = entry.places;
    if (entry.left % 2 === 0) entry.places.unshift(this.#renderer.wrap(outer ?? inner, "emphasis"));
    else if (outer !== undefined) entry.places[0] = this.#renderer.turn(outer, "strong", "");
    this.#renderer.turn(inner, "emphasis", "");
  }

  /** All that is open above here is text after all. */
  #give(index: number): void {
    this.#flush();
    for (let last = this.#stack.length - 1; last >= index; last--) this.#drop(last);
  }

  #drop(index: number): void {
    this.#flush();
    const [entry] = this.#stack.splice(index, 1) as [Open<N>];
    let text = entry.mark.endsWith("[") ? entry.mark : entry.mark.repeat(entry.left);
    for (const place of entry.places) {
      this.#renderer.unwrap(place, text);
      text = "";
    }
  }

  // Code

  #code(at: number, end: number): number {
    if (end === this.#rest.length) return this.#say(this.#rest, at, end); // the block's last
    this.#beginSpan("code", end - at);
    return at;
  }

  #beginSpan(kind: "code" | "address", length: number): void {
    this.#flush();
    const place = this.#renderer.open(this.#place(), kind === "code" ? "code" : "link", "");
    this.#span = { kind, place, length, read: length, good: 0, shown: 0, brackets: 0, padded: false, filled: false };
  }

  #goOn(span: Span<N>, at: number): number {
    return span.kind === "code" ? this.#goOnCode(span, at) : this.#goOnAddress(span, at);
  }

  #goOnCode(span: Span<N>, at: number): number {
    const rest = this.#rest;
    const limit = at + SPAN;
    for (;;) {
      const from = at + span.read;
      let end = rest.indexOf("`", from);
      if (end < 0 || end >= limit) {
        if (rest.length >= limit || this.#final) return this.#noCode(span, at);
        const held = CODE_SPACE.test(rest.slice(-1)) ? 1 : 0; // may be the one before the end
        this.#sayCode(span, at, Math.max(rest.length - held, from));
        return -1;
      }
      const begin = end;
      while (rest[end] === "`") end++;
      if (end === rest.length && !this.#final && end < limit + RUN) return -1;
      if (end - begin !== span.length) {
        this.#sayCode(span, at, end);
        continue;
      }
      const padded = begin > from && CODE_SPACE.test(rest[begin - 1] as string);
      this.#sayCode(span, at, padded ? begin - 1 : begin);
      const stripped = span.padded && padded && span.filled; // CommonMark 0.31.2, §6.1
      if (span.padded && !stripped) this.#renderer.lead(span.place, " ");
      if (padded && !stripped) this.#renderer.text(span.place, " ");
      this.#written += end - at;
      this.#span = null;
      return end;
    }
  }

  #sayCode(span: Span<N>, at: number, to: number): void {
    let text = this.#rest.slice(at + span.read, to).replaceAll("\n", " ");
    if (text === "") return;
    if (span.read === span.length && text.startsWith(" ")) {
      span.padded = true;
      text = text.slice(1);
    }
    span.read = to - at;
    span.filled ||= /[^ ]/.test(text);
    if (text !== "") this.#renderer.text(span.place, text);
  }

  /** Its end did not come: the backticks are text, and what follows them is read as it should have been. */
  #noCode(span: Span<N>, at: number): number {
    this.#renderer.remove(span.place);
    this.#span = null;
    return this.#say(this.#rest, at, at + span.length);
  }

  // Links

  /** A bracket begins a link, unless it is seen at once not to. */
  #bracket(mark: string, at: number): number {
    const begins = this.#linkBegins(at + mark.length);
    if (begins === "wait") return -1;
    this.#room();
    const entry = { mark, length: 1, closes: false, at: this.#written, left: 1, places: [] };
    if (begins === null) {
      this.#put(mark);
      this.#stack.push(entry);
    } else this.#enter(entry, "link");
    return at + mark.length;
  }

  #linkBegins(from: number): Found<true> {
    const rest = this.#rest;
    let depth = 1;
    for (let at = from; at < from + HELD; at++) {
      const character = rest[at];
      if (character === undefined) return this.#final ? null : "wait";
      if (character === "\\") at++;
      else if (character === "`" || character === "<") return true; // a bracket in there may be none
      else if (character === "[" && ++depth > BRACKETS) return null;
      else if (character === "]" && --depth === 0) {
        const next = rest.slice(at + 1, at + 3); // a bracket, and the beginning of an address or of what may become one
        if (LEADS.test(next)) return true;
        return next === "" || next === "(" ? (this.#final ? null : "wait") : null;
      }
    }
    return true;
  }

  #unbracket(at: number): number {
    const index = this.#stack.findLastIndex((entry) => entry.mark.endsWith("["));
    const entry = this.#stack[index];
    if (entry === undefined) return this.#say(this.#rest, at, at + 1);
    if (entry.places.length === 0) {
      this.#stack.splice(index, 1);
      return this.#say(this.#rest, at, at + 1);
    }
    const found = destination(this.#rest, at + 1);
    if (found === "wait" && !this.#final) return -1;
    const address = found === null || found === "wait" ? null : harmless(found.address);
    if (found === null || found === "wait" || address === null) {
      this.#drop(index);
      return this.#say(this.#rest, at, at + 1);
    }
    this.#give(index + 1);
    this.#renderer.aim(entry.places[0] as N, address, entry.mark === "![");
    this.#stack.pop();
    if (entry.mark === "[") this.#noOuterLinks();
    return found.end;
  }

  /** A link is not part of another one: what is open around it is text, and waits for its partner. */
  #noOuterLinks(): void {
    for (const entry of this.#stack) {
      if (entry.mark === "[" && entry.places.length > 0) this.#renderer.unwrap(entry.places.pop() as N, "[");
    }
  }

  #autolink(at: number): number {
    const scheme = /^<(?:https?:|mailto:)/i.test(this.#rest.slice(at, at + SCHEMES + 1));
    const found = this.#match(AUTOLINK, AUTOLINK_BEGUN, scheme ? ADDRESS : HELD, at);
    if (found === "wait") return -1;
    const text = found === null ? "" : found[0].slice(1, -1);
    const address = found === null ? null : harmless(found[1] === undefined ? `mailto:${text}` : text);
    if (found === null || address === null) return this.#say(this.#rest, at, at + 1);
    this.#flush();
    const place = this.#renderer.open(this.#place(), "link", "");
    this.#renderer.text(place, text);
    this.#renderer.aim(place, address, false);
    this.#written += text.length;
    return at + found[0].length;
  }

  /** An address without any marks, after GFM 0.29, §6.9: only what names its scheme. */
  #bare(at: number): number {
    if (WORD.test(this.#before)) return this.#say(this.#rest, at, at + 1);
    const found = this.#match(SCHEME, SCHEME_BEGUN, SCHEMES + 2, at);
    if (found === "wait") return -1;
    if (found === null) return this.#say(this.#rest, at, at + 1);
    this.#beginSpan("address", 0);
    return at;
  }

  #goOnAddress(span: Span<N>, at: number): number {
    const rest = this.#rest;
    let to = at + span.read;
    let ended = this.#final;
    while (to < rest.length) {
      const character = String.fromCodePoint(rest.codePointAt(to) as number);
      let next = to + character.length;
      ended = URL_END.test(character) || next - at > ADDRESS || to - at - span.good >= HELD;
      if (ended) break;
      if (character === "&") {
        const found = this.#match(REFERENCE, REFERENCE_BEGUN, HELD, to);
        if (found === "wait") break;
        ended = found !== null && found[0] !== AMPERSAND; // that one alone is part of it
        if (ended) break;
        if (found !== null) next = to + AMPERSAND.length;
      }
      to = next;
      if (character === "(") span.brackets++;
      if (character === ")" ? span.brackets > 0 && span.brackets-- : !URL_TAIL.test(character)) span.good = to - at;
      ended = this.#final;
    }
    const more = rest.slice(at + span.shown, at + span.good).replaceAll(AMPERSAND, "&");
    if (more !== "") this.#renderer.text(span.place, more);
    span.read = to - at;
    span.shown = span.good;
    return ended ? this.#endAddress(span, at) : -1;
  }

  #endAddress(span: Span<N>, at: number): number {
    const text = this.#rest.slice(at, at + span.good).replaceAll(AMPERSAND, "&");
    const address = span.read + 1 < ADDRESS ? harmless(text) : null;
    if (address === null) this.#renderer.unwrap(span.place, "");
    else this.#renderer.aim(span.place, address, false);
    this.#written += text.length;
    this.#span = null;
    return at + span.good;
  }
}
