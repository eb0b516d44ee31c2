// Where the rest of a line goes once it is known what the line is.

import type { Inline } from "./inline.ts";
import { COLUMNS, HELD } from "./limits.ts";
import type { Renderer } from "./renderer.ts";

export interface Sink {
  /** More of the line, never empty. */
  write(text: string): void;
  /** The line is whole. */
  end(): void;
}

/** For a line that is all syntax. */
export const NOTHING: Sink = { write() {}, end() {} };

const blank = (character: string | undefined): boolean => character === " " || character === "\t";

/** A heading's text, without the `#` that may close it. Source: CommonMark 0.31.2, §4.2. */
export class HeadingSink<N> implements Sink {
  readonly #inline: Inline<N>;
  #held = ""; // spaces, and what may be the closing marks
  #last = " "; // character that was passed on

  constructor(inline: Inline<N>) {
    this.#inline = inline;
  }

  write(text: string): void {
    let all = this.#held + text;
    if (this.#last === " ") all = all.replace(/^[ \t]+/, "");
    const start = this.#tail(all);
    if (start > 0) {
      this.#inline.write(all.slice(0, start));
      this.#last = all[start - 1] === " " ? "\t" : (all[start - 1] as string); // " " is for: nothing yet
    }
    this.#held = all.slice(start);
  }

  end(): void {
    this.#inline.end();
  }

  /** Where that begins which is not text if the line ends here; at most HELD before its end. */
  #tail(all: string): number {
    let spaces = all.length;
    while (blank(all[spaces - 1])) spaces--;
    let marks = spaces;
    while (all[marks - 1] === "#") marks--;
    let start = spaces;
    if (marks < spaces && blank(marks > 0 ? all[marks - 1] : this.#last)) {
      start = marks;
      while (blank(all[start - 1])) start--;
      if (all[all.length - HELD - 1] === "#") start = spaces; // too many of them
    }
    return Math.max(start, all.length - HELD);
  }
}

/** A row of a table. Source: GFM 0.29, §4.10; cells beyond the table's columns are kept. */
export class RowSink<N> implements Sink {
  readonly #renderer: Renderer<N>;
  readonly #inline: Inline<N>;
  readonly #row: N;
  readonly #aligns: readonly string[];
  #cells = 0;
  #open = false; // a cell
  #begun = false; // there was a bar, or a cell
  #spaces = "";
  #escape = false; // a backslash came

  constructor(renderer: Renderer<N>, inline: Inline<N>, row: N, aligns: readonly string[]) {
    this.#renderer = renderer;
    this.#inline = inline;
    this.#row = row;
    this.#aligns = aligns;
  }

  write(text: string): void {
    for (const [token] of text.matchAll(/[ \t]+|\\|\||[^ \t\\|]+/g)) {
      const escaped = this.#escape;
      this.#escape = token === "\\";
      if (token === "|" && (escaped || this.#cells >= COLUMNS)) this.#say("|");
      else {
        if (escaped) this.#say("\\");
        if (token === "|") this.#bar();
        else if (blank(token[0])) this.#space(token);
        else if (token !== "\\") this.#say(token);
      }
    }
  }

  end(): void {
    if (this.#escape) this.#say("\\");
    if (this.#open) this.#inline.end();
  }

  #bar(): void {
    if (!this.#open && this.#begun) this.#cell();
    if (this.#open) this.#inline.end();
    this.#open = false;
    this.#begun = true;
    this.#spaces = "";
  }

  #cell(): void {
    this.#inline.begin(this.#renderer.open(this.#row, "cell", this.#aligns[this.#cells] ?? ""));
    this.#cells++;
    this.#open = this.#begun = true;
    this.#spaces = ""; // those before its text
  }

  #say(text: string): void {
    if (!this.#open) this.#cell();
    this.#inline.write(this.#spaces + text);
    this.#spaces = "";
  }

  /** Spaces are text once something follows them, or where they are very many. */
  #space(spaces: string): void {
    if (!this.#open) return;
    const all = this.#spaces + spaces;
    if (all.length > HELD) this.#inline.write(all.slice(0, -HELD));
    this.#spaces = all.slice(-HELD);
  }
}

/** A line of fenced code. The line end before it is written with it: code does not end in one. */
export class CodeSink<N> implements Sink {
  readonly #renderer: Renderer<N>;
  readonly #place: N;
  #newlines = -1;

  constructor(renderer: Renderer<N>, place: N) {
    this.#renderer = renderer;
    this.#place = place;
  }

  /** The next line. */
  begin(): void {
    this.#newlines++;
  }

  write(text: string): void {
    this.#renderer.text(this.#place, "\n".repeat(this.#newlines) + text);
    this.#newlines = 0;
  }

  end(): void {}

  /** The code is over, with its empty lines. */
  close(): void {
    if (this.#newlines > 0) this.write("");
  }
}
