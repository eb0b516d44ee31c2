// Markdown, read as it comes: what is certain is shown in the same call, and nothing is read twice but what limits.ts
// bounds. The result never depends on how the text was cut.
//
// It is CommonMark 0.31.2 with GFM's tables, strikethrough (two tildes), task lists and addresses, but for what a text
// that is read while it is written should not have: HTML is text; there are no reference links (their definitions come
// last), no indented code (models indent without meaning it); `---` below a paragraph is a rule, not a heading, and
// `===` makes a heading of one line only. Addresses are followed by the rules of address.ts, references are HTML 4's.
// Line ends and spaces within paragraphs stay. Marks that mean nothing are text: nothing that the model wrote is lost.

import { Inline } from "./inline.ts";
import { COLUMNS, CONTAINERS, HELD, LINE, ROW } from "./limits.ts";
import type { Renderer } from "./renderer.ts";
import { CodeSink, HeadingSink, NOTHING, RowSink, type Sink } from "./sinks.ts";

interface List<N> {
  readonly place: N;
  readonly mark: string; // "-", "*", "+", "." or ")"
  loose: boolean;
}

/** A quote, or the item of a list. */
interface Container<N> {
  readonly place: N;
  readonly list: List<N> | null; // null: a quote
  indent: number; // columns that belong to an item
  empty: boolean; // an item without anything yet
}

/** What text goes to. first: the one line of a paragraph, as far as it may yet be a table's or a heading. */
type Leaf<N> =
  | { readonly kind: "paragraph"; readonly place: N; first: string | null }
  | { readonly kind: "fence"; readonly sink: CodeSink<N>; readonly mark: string; readonly indent: number }
  | { readonly kind: "table"; readonly place: N; readonly aligns: readonly string[] };

const RULE = /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const RULE_BEGUN = /^([-*_])(?:[ \t]|\1)*$/;
const HEADING = /^#{1,6}(?=[ \t]|$)/;
const FENCE = /^(`{3,})([^`]*)$|^(~{3,})(.*)$/;
const FENCE_BEGUN = /^(?:`{1,2}|`{3,}[^`]*|~{1,2}|~{3,}.*)$/;
const ITEM = /^(?:[-*+]|(\d{1,9})[.)])(?=[ \t]|$)/;
const ITEM_BEGUN = /^(?:[-*+]|\d{1,9}[.)]?)[ \t]*$/;
const TASK = /^\[([ xX])\][ \t]/;
const TASK_BEGUN = /^\[(?:[ xX]\]?)?$/;
const UNDERLINE = /^=+[ \t]*$/;
const DELIMITERS_BEGUN = /^(?!-[ \t])[-|:][-|: \t]*$/; // a dash and a space begin an item
const LANGUAGE = /^[\w+#.-]+/;

/** Reads one answer. */
export class Parser<N> {
  readonly #renderer: Renderer<N>;
  readonly #root: N;
  readonly #inline: Inline<N>;
  #containers: Container<N>[] = [];
  #leaf: Leaf<N> | null = null;
  #header: string | null = null; // a line that may be the first of a table
  #line = ""; // what of a line's beginning is not decided
  #column = 0; // where it stands
  #matched = -1; // containers that this line goes on in; -1: not known yet
  #blank = false; // the line before was blank
  #sink: Sink | null = null; // where the rest of this line goes
  #pending = ""; // a high surrogate, whose other half comes
  #return = false; // a CR came last: an LF after it belongs to it

  constructor(renderer: Renderer<N>, root: N) {
    this.#renderer = renderer;
    this.#root = root;
    this.#inline = new Inline(renderer);
  }

  /** More of the answer: any slice, also one that cuts a surrogate pair. */
  write(delta: string): void {
    let text = this.#pending + delta;
    this.#pending = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
    if (this.#pending !== "") text = text.slice(0, -1);
    if (text === "") return;
    if (this.#return && text.startsWith("\n")) text = text.slice(1);
    this.#return = text.endsWith("\r");
    this.#take(text.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd"));
  }

  /** The answer is over, or was cut off here. */
  end(): void {
    this.#take(this.#pending);
    this.#pending = "";
    if (this.#line !== "" || this.#sink !== null) this.#endLine(); // a line without its end is one, too
    this.#newLine();
    this.#flushHeader();
    this.#close(0);
  }

  #take(text: string): void {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#part(text.slice(from, end));
      this.#endLine();
      this.#newLine();
      from = end + 1;
    }
    if (from < text.length) this.#part(text.slice(from));
  }

  /** A part of a line. */
  #part(text: string): void {
    if (this.#sink !== null) {
      if (text !== "") this.#sink.write(text);
      return;
    }
    this.#line += text;
    this.#begin(false);
  }

  #endLine(): void {
    if (this.#sink === null) this.#begin(true);
    this.#sink?.end();
  }

  #newLine(): void {
    this.#sink = null;
    this.#line = "";
    this.#column = 0;
    this.#matched = -1;
  }

  // The beginning of a line

  /** Find out what a line is, as far as what has come tells. whole: no more of it will come. */
  #begin(whole: boolean): void {
    if (this.#matched < 0 && !this.#match(whole)) return;
    if (this.#leaf?.kind === "fence" && this.#matched === this.#containers.length) {
      this.#code(this.#leaf, whole);
      return;
    }
    while (this.#sink === null && this.#block(whole)); // one container after the other
  }

  /** Find the containers that the line goes on in. Returns: whether they are known. */
  #match(whole: boolean): boolean {
    let [line, column, matched] = [this.#line, 0, 0];
    const blank = /^[ \t]*$/.test(line);
    if (blank && !whole && line.length < LINE && this.#containers.length > 0) return false;
    for (const { list, indent } of this.#containers) {
      if (list === null) {
        const mark = /^ {0,3}>/.exec(line)?.[0];
        if (mark === undefined) {
          if (!whole && /^ {0,3}$/.test(line)) return false;
          break;
        }
        if (!whole && mark.length === line.length) return false; // its space belongs to it
        [line, column] = dedent(line.slice(mark.length), column + mark.length, 1);
      } else {
        const [rest, to] = dedent(line, column, indent);
        if (to - column < indent && !(whole && /^[ \t]*$/.test(line))) {
          if (!whole && rest === "") return false;
          break;
        }
        [line, column] = [rest, to];
      }
      matched++;
    }
    [this.#line, this.#column, this.#matched] = [line, column, matched];
    return true;
  }

  /** Whether nothing has been closed that the line does not go on in. */
  get #inside(): boolean {
    return this.#matched === this.#containers.length;
  }

  /** Begin what begins here. Returns: whether it was a container, and something else may begin within it. */
  #block(whole: boolean): boolean {
    const line = this.#line;
    const text = line.replace(/^[ \t]+/, "");
    if (text === "") {
      if (whole) this.#blankLine();
      else if (line.length >= LINE) this.#text(line);
      return false;
    }
    const column = dedent(line, this.#column, Infinity)[1];
    const margin = column - this.#column;
    if (!this.#afterHeader(margin > 3 ? "" : text, whole)) return false;
    if (margin > 3) return this.#text(line);
    if (this.#belowParagraph(text, whole)) return false;
    if (text[0] === ">" && this.#containers.length < CONTAINERS) return this.#quote(text, column, whole);
    if (this.#undecided(text, whole)) return false;
    if (HEADING.test(text)) return this.#heading(text);
    const short = whole && text.length <= LINE;
    const fence = short ? FENCE.exec(text) : null;
    if (fence !== null) return this.#fence(fence, margin);
    if (short && RULE.test(text)) return this.#rule();
    const item = this.#itemBegun(text);
    if (item !== null) return this.#item(item, text, column);
    if (whole && this.#maybeHeader(text)) {
      this.#holdHeader(text);
      return false;
    }
    return this.#task(text, whole) && this.#text(this.#continues && this.#inside ? line : text);
  }

  /** Whether more of this line decides what it is. */
  #undecided(text: string, whole: boolean): boolean {
    if (whole) return false;
    if (/^#{1,6}$/.test(text)) return true;
    if (text.length <= LINE && (FENCE_BEGUN.test(text) || RULE_BEGUN.test(text))) return true;
    if (text.length <= HELD && ITEM_BEGUN.test(text)) return true;
    return this.#maybeHeader(text);
  }

  /** A paragraph is open, and goes on if nothing else begins: even where its containers do not. */
  get #continues(): boolean {
    return this.#leaf?.kind === "paragraph";
  }

  // Blocks

  /** Close what is not part of the containers that the line goes on in. Returns: where something new begins. */
  #enter(length = this.#matched): N {
    this.#close(length);
    const parent = this.#containers.at(-1);
    if (parent !== undefined && parent.list !== null && this.#blank && !parent.empty) this.#loosen(parent.list);
    if (parent !== undefined) parent.empty = false;
    this.#blank = false;
    return parent === undefined ? this.#root : parent.place;
  }

  #loosen(list: List<N>): void {
    if (!list.loose) this.#renderer.loosen(list.place);
    list.loose = true;
  }

  #close(length: number): void {
    if (this.#leaf?.kind === "paragraph") this.#inline.end();
    if (this.#leaf?.kind === "fence") this.#leaf.sink.close();
    this.#leaf = null;
    this.#containers.length = length;
  }

  #send(sink: Sink, text: string): false {
    this.#sink = sink;
    if (text !== "") sink.write(text);
    return false;
  }

  #blankLine(): void {
    this.#flushHeader();
    this.#close(this.#matched);
    const last = this.#containers.at(-1);
    if (last !== undefined && last.list !== null && last.empty) last.indent = Infinity; // §5.2: it is over
    this.#blank = true;
    this.#sink = NOTHING;
  }

  #text(text: string): false {
    const leaf = this.#leaf;
    if (leaf?.kind === "paragraph") {
      leaf.first = null;
      return this.#send(this.#paragraphSink(leaf), text);
    }
    if (leaf?.kind === "table" && this.#inside) {
      const row = this.#renderer.open(leaf.place, "row", "");
      return this.#send(new RowSink(this.#renderer, this.#inline, row, leaf.aligns), text);
    }
    return this.#paragraph(this.#enter(), "", text);
  }

  #paragraph(parent: N, first: string | null, text: string): false {
    const place = this.#renderer.open(parent, "paragraph", "");
    this.#inline.begin(place);
    const leaf = { kind: "paragraph" as const, place, first };
    this.#leaf = leaf;
    return this.#send(this.#paragraphSink(leaf), text);
  }

  #paragraphSink(leaf: { first: string | null }): Sink {
    return {
      write: (text) => {
        if (leaf.first !== null) leaf.first = leaf.first.length + text.length <= ROW ? leaf.first + text : null;
        this.#inline.write(text);
      },
      end: () => this.#inline.write("\n"),
    };
  }

  #heading(text: string): false {
    const level = text.search(/[^#]|$/);
    this.#inline.begin(this.#renderer.open(this.#enter(), "heading", String(level)));
    return this.#send(new HeadingSink(this.#inline), text.slice(level));
  }

  #rule(): false {
    this.#renderer.open(this.#enter(), "rule", "");
    return this.#send(NOTHING, "");
  }

  #quote(text: string, column: number, whole: boolean): boolean {
    if (!whole && text.length === 1) return false; // its space belongs to it
    const place = this.#renderer.open(this.#enter(), "quote", "");
    this.#goInto({ place, list: null, indent: 0, empty: false });
    [this.#line, this.#column] = dedent(text.slice(1), column + 1, 1);
    return true;
  }

  #goInto(container: Container<N>): void {
    this.#matched = this.#containers.push(container);
  }

  // Lists. Source: CommonMark 0.31.2, §5.2 and §5.3; GFM 0.29, §5.3

  /** The mark of an item, unless it is text: not every one ends a paragraph. */
  #itemBegun(text: string): string | null {
    const item = ITEM.exec(text);
    if (item === null || this.#containers.length >= CONTAINERS) return null;
    const [mark, number = "1"] = item;
    if (!this.#continues || !this.#inside) return mark;
    return Number(number) === 1 && !isBare(text, mark) ? mark : null;
  }

  #item(mark: string, text: string, column: number): boolean {
    const kind = mark.slice(-1);
    const before = this.#containers[this.#matched]?.list ?? null;
    let list: List<N>;
    if (before !== null && before.mark === kind) {
      list = before;
      if (this.#blank) this.#loosen(list);
      this.#blank = false;
      this.#close(this.#matched);
    } else {
      const start = mark.length > 1 ? String(parseInt(mark, 10)) : "";
      list = { place: this.#renderer.open(this.#enter(), "list", start), mark: kind, loose: false };
    }
    const rest = text.slice(mark.length);
    const bare = isBare(text, mark);
    const from = column + mark.length;
    const spaces = dedent(rest, from, Infinity)[1] - from;
    const width = bare || spaces > 4 || /^[ \t]*$/.test(rest) ? 1 : spaces;
    const place = this.#renderer.open(list.place, "item", "");
    const indent = from + width - this.#column;
    this.#goInto({ place, list, indent, empty: true });
    [this.#line, this.#column] = dedent(rest, from, width);
    if (bare) this.#sink = NOTHING;
    return !bare;
  }

  /** Begin a task, where one stands. Returns: whether it is seen that none does. */
  #task(text: string, whole: boolean): boolean {
    const item = this.#containers.at(-1);
    if (item === undefined || item.list === null || !item.empty || !this.#inside) return true;
    if (!whole && TASK_BEGUN.test(text)) return false;
    const task = TASK.exec(text);
    if (task === null) return true;
    const place = this.#renderer.open(this.#enter(), "task", task[1] === " " ? "" : "x");
    this.#inline.begin(place);
    const leaf = { kind: "paragraph" as const, place, first: null };
    this.#leaf = leaf;
    return this.#send(this.#paragraphSink(leaf), text.slice(task[0].length));
  }

  // Code

  #fence(fence: RegExpExecArray, margin: number): false {
    const [, ticks, afterTicks, tildes, afterTildes] = fence;
    const language = LANGUAGE.exec((afterTicks ?? afterTildes ?? "").trim())?.[0] ?? "";
    const place = this.#renderer.open(this.#enter(), "fence", language);
    const mark = ticks ?? tildes ?? "";
    this.#leaf = { kind: "fence", sink: new CodeSink(this.#renderer, place), mark, indent: margin };
    return this.#send(NOTHING, "");
  }

  #code({ sink, mark, indent }: { sink: CodeSink<N>; mark: string; indent: number }, whole: boolean): void {
    const marks = this.#line.replace(/^ {0,3}/, "").replace(/[ \t]*$/, "");
    const closes = marks === (mark[0] as string).repeat(marks.length) && this.#line.length <= mark.length + HELD;
    if (closes && !whole) return;
    if (closes && marks.length >= mark.length) {
      this.#close(this.#containers.length);
      this.#sink = NOTHING;
      return;
    }
    sink.begin();
    this.#send(sink, dedent(this.#line, this.#column, indent)[0]);
  }

  // Tables, and headings by underline. Source: GFM 0.29, §4.10; CommonMark 0.31.2, §4.3

  #maybeHeader(text: string): boolean {
    if (text[0] !== "|" || text.length > ROW) return false;
    return this.#continues ? this.#inside : !(this.#leaf?.kind === "table" && this.#inside);
  }

  #holdHeader(text: string): void {
    if (!this.#continues) this.#close(this.#matched);
    this.#header = text;
    this.#sink = NOTHING;
  }

  /** The line that was held is text: in the paragraph that is open, or a new one. */
  #flushHeader(): void {
    const header = this.#header;
    if (header === null) return;
    this.#header = null;
    if (!this.#continues) this.#paragraph(this.#enter(this.#containers.length), null, "");
    this.#sink = null;
    this.#inline.write(`${header}\n`);
  }

  /** See whether a table begins. Returns: whether the line is read on as any other. */
  #afterHeader(text: string, whole: boolean): boolean {
    if (this.#header === null) return true;
    if (this.#inside && text.length <= ROW && DELIMITERS_BEGUN.test(text)) {
      if (!whole) return false;
      if (this.#table(this.#header, text)) return false;
    }
    this.#flushHeader();
    return true;
  }

  /** See whether a paragraph of one line is a heading, or began a table. Returns: whether it is, or may be. */
  #belowParagraph(text: string, whole: boolean): boolean {
    const leaf = this.#leaf;
    if (leaf?.kind !== "paragraph" || leaf.first === null || !this.#inside || text.length > ROW) return false;
    if (UNDERLINE.test(text) && text.length <= HELD) {
      if (!whole) return true;
      this.#close(this.#matched);
      this.#renderer.turn(leaf.place, "heading", "1");
      this.#sink = NOTHING;
      return true;
    }
    if (!leaf.first.includes("|") || !DELIMITERS_BEGUN.test(text)) return false;
    if (!whole) return true;
    if (!this.#table(leaf.first, text)) return false;
    this.#renderer.remove(leaf.place);
    return true;
  }

  #table(header: string, delimiters: string): boolean {
    const aligns = alignments(delimiters);
    if (aligns === null || cells(header).length !== aligns.length) return false;
    const place = this.#renderer.open(this.#enter(this.#containers.length), "table", "");
    this.#header = null;
    const head = this.#renderer.open(place, "head", "");
    const row = new RowSink(this.#renderer, this.#inline, head, aligns);
    row.write(header);
    row.end();
    this.#leaf = { kind: "table", place, aligns };
    this.#sink = NOTHING;
    return true;
  }
}

/** Whether nothing follows the mark of an item, as far as one waits for it. */
function isBare(text: string, mark: string): boolean {
  return text.length <= HELD && /^[ \t]*$/.test(text.slice(mark.length));
}

/** The line without so many columns of its indentation, or all there are, and its new column. Tabs are 4 wide. */
function dedent(line: string, column: number, columns: number): [line: string, column: number] {
  let at = 0;
  const end = column + columns;
  while (column < end) {
    const width = line[at] === " " ? 1 : line[at] === "\t" ? 4 - (column % 4) : 0;
    if (width === 0) break;
    at++;
    if (column + width > end) return [" ".repeat(column + width - end) + line.slice(at), end];
    column += width;
  }
  return [line.slice(at), column];
}

/** The cells of a row, for the two that say what a table is. */
function cells(row: string): string[] {
  return row
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "")
    .split(/(?<!\\)\|/);
}

function alignments(row: string): string[] | null {
  const columns = cells(row).map((cell) => /^(:?)-+(:?)$/.exec(cell.trim()));
  if (!row.includes("|") || columns.length > COLUMNS) return null;
  const aligns = columns.map((found) => {
    if (found === null) return null;
    return found[2] === ":" ? (found[1] === ":" ? "center" : "right") : found[1] === ":" ? "left" : "";
  });
  return aligns.every((align) => align !== null) ? aligns : null;
}
