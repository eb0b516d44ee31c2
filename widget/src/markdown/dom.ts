// The answer as elements of the page: made with createElement and text nodes alone, so that what a model wrote is never
// read as HTML, and a page's Content-Security-Policy and Trusted Types have nothing to object to.

import { appendText, isTextNode, NODE } from "../text.ts";
import type { Kind, Renderer } from "./renderer.ts";

export interface MarkdownOptions {
  /** Whether an image of this address may be fetched; default: none is. Then it is a link with its alt text. */
  image?: (url: URL) => boolean;
  /** Called once for each code block when it begins, to add a copy button; `source()` gives its code so far. */
  code?: (block: HTMLElement, source: () => string) => void;
}

/**
 * UTF-16 units after which a paragraph or code goes on in a box of its own, at its next space or line end: a browser
 * lays out the whole box that grew again, in a time that grows with it.
 */
const PART = 4000;
/** The same where no space comes, as in Chinese. */
const PART_AT_MOST = 5000;

/**
 * Items of a list, rows of a table, and blocks in anything else, after which it goes on in another such element: a
 * browser visits all siblings of what grew. And it paints what is out of sight, unless told not to.
 */
const ITEMS = 50;
const ROWS = 50;
const BLOCKS = 200;
/** The guessed height of one of them, where a part has never been seen. */
const HEIGHT_EM = 1.8;

/** A block that holds text, with all that is within its text. */
interface Leaf {
  readonly element: HTMLElement;
  readonly end: RegExp; // where it may go on in another part
  part: HTMLElement; // where it goes on
  size: number; // UTF-16 units in that part
}

/** What holds blocks, items or rows: in one element after the other. */
interface Holder {
  readonly parts: HTMLElement[];
  count: number; // of them in the last part
}

/** A block at the outermost level, until the first letter of its text has told its direction. */
interface Direction {
  element: HTMLElement;
  known: boolean;
}

export interface Place {
  readonly element: HTMLElement;
  readonly leaf: Leaf | null;
  readonly holder: Holder | null;
  readonly direction: Direction | null; // null: what is in it tells none
}

/** The first character of a text that has a direction, as `dir="auto"` finds it: HTML, "the dir attribute". */
const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

const TAGS = {
  paragraph: "p",
  quote: "blockquote",
  rule: "hr",
  emphasis: "em",
  strong: "strong",
  strike: "s",
  code: "code",
  link: "a", // until it has got its address it leads nowhere, and looks like text
} as const;

export class DomRenderer implements Renderer<Place> {
  readonly #root: Place;
  readonly #options: MarkdownOptions;

  constructor(root: HTMLElement, options: MarkdownOptions) {
    this.#root = holder(root, null);
    this.#options = options;
  }

  get root(): Place {
    return this.#root;
  }

  open(parent: Place, kind: Kind, detail: string): Place {
    switch (kind) {
      case "paragraph":
      case "heading":
        return leaf(...this.#block(parent, tag(kind, detail)));
      case "quote":
      case "rule":
        return holder(...this.#block(parent, TAGS[kind]));
      case "list":
        return this.#list(parent, detail);
      case "item":
        return this.#item(parent);
      case "task":
        return this.#task(parent, detail);
      case "fence":
        return this.#fence(parent, detail);
      case "table":
        return this.#table(parent);
      case "head":
        return holder(append(append(parent.element, "thead"), "tr"), parent.direction);
      case "row":
        return this.#row(parent);
      case "cell":
        return this.#cell(parent, detail);
      default: {
        const element = append(inner(parent), TAGS[kind]);
        if (kind === "code") element.dir = "ltr";
        return { ...parent, element, direction: kind === "code" ? null : parent.direction };
      }
    }
  }

  /**
   * A block at the outermost level has a direction by its own text; what is within follows it: a list whose items chose
   * for themselves would have the room for their marks on the wrong side. (`dir="auto"` does that too, and has browsers
   * look through the block at each change, until it has a letter: 100 kB of brackets took more than a minute.)
   */
  #block(parent: Place, name: string): [HTMLElement, Direction | null] {
    const { parts } = next(parent, BLOCKS, () => append(parent.element, "div"));
    const element = append(parts.at(-1) as HTMLElement, name);
    return [element, parent === this.#root ? { element, known: false } : parent.direction];
  }

  #list(parent: Place, start: string): Place {
    const [list, direction] = this.#block(parent, start === "" ? "ul" : "ol");
    if (start !== "" && start !== "1") list.setAttribute("start", start);
    return holder(list, direction);
  }

  #item(list: Place): Place {
    const { parts } = next(list, ITEMS, (before) => {
      const part = beside(before);
      if (before instanceof HTMLOListElement) part.setAttribute("start", String(before.start + ITEMS));
      before.style.marginBlockEnd = "0"; // it is one list
      return part;
    });
    return holder(append(parts.at(-1) as HTMLElement, "li"), list.direction);
  }

  #task(parent: Place, done: string): Place {
    const [block, direction] = this.#block(parent, "p");
    const place = leaf(append(block, "label"), direction);
    const box = append(place.element, "input") as HTMLInputElement;
    box.type = "checkbox";
    box.disabled = true;
    box.defaultChecked = done !== "";
    return place;
  }

  #fence(parent: Place, language: string): Place {
    const [block] = this.#block(parent, "div");
    block.className = "code";
    block.dir = "ltr";
    const frame = append(block, "pre");
    focusable(frame);
    const code = append(frame, "code");
    if (language !== "") {
      code.className = `language-${language}`;
      block.dataset["language"] = language;
      frame.setAttribute("aria-label", language);
    }
    this.#options.code?.(block, () => code.textContent ?? "");
    return leaf(code, null, /\n/g);
  }

  #table(parent: Place): Place {
    const [frame, direction] = this.#block(parent, "div");
    frame.className = "table";
    focusable(frame);
    const part = append(frame, "div");
    return { ...holder(append(part, "table"), direction), holder: { parts: [part], count: 0 } };
  }

  #row(table: Place): Place {
    const { parts } = next(table, ROWS, (before) => {
      const first = table.element as HTMLTableElement;
      if (before.firstElementChild === first) freeze(first, before);
      const part = beside(before);
      const columns = first.querySelectorAll("col");
      const rest = part.appendChild(like(first));
      if (columns.length > 0) append(rest, "colgroup").append(...[...columns].map(like));
      return part;
    });
    const part = (parts.at(-1) as HTMLElement).firstElementChild as HTMLTableElement;
    const row = append(part.tBodies[0] ?? append(part, "tbody"), "tr") as HTMLTableRowElement;
    if (parts.length > 1) describe(row);
    return holder(row, table.direction);
  }

  #cell({ element, direction }: Place, align: string): Place {
    const heads = element.parentElement?.localName === "thead";
    const cell = append(element, heads ? "th" : "td");
    if (heads) cell.setAttribute("scope", "col");
    if (element.hasAttribute("role")) cell.setAttribute("role", "cell");
    if (align !== "") cell.style.textAlign = align;
    return leaf(cell, direction);
  }

  text(place: Place, text: string): void {
    const leaf = place.leaf as Leaf;
    if (place.direction?.known === false) direct(place.direction, text);
    if (place.element !== leaf.element) {
      appendText(place.element, text);
      leaf.size += text.length;
      return;
    }
    for (let end = cut(leaf, text); ; end = cut(leaf, text)) {
      appendText(leaf.part, text.slice(0, end));
      leaf.size += end;
      text = text.slice(end);
      if (text === "") break;
      leaf.part = append(leaf.element, "span");
      leaf.part.style.display = "block";
      leaf.size = 0;
    }
  }

  lead(place: Place, text: string): void {
    place.element.prepend(text);
  }

  unwrap({ element, leaf }: Place, text: string): void {
    if (leaf !== null) leaf.size += text.length;
    const before = element.previousSibling;
    const first = element.firstChild;
    if (isTextNode(before) && before.length < NODE) { // a node for each mark that meant nothing would be many
      before.appendData(isTextNode(first) ? text + first.data : text);
      if (isTextNode(first)) first.remove();
    } else if (text !== "") element.before(text);
    element.replaceWith(...element.childNodes);
  }

  remove({ element }: Place): void {
    element.remove();
  }

  turn(place: Place, kind: "heading" | "emphasis" | "strong", detail: string): Place {
    const { element: before } = place;
    const element = create(before, tag(kind, detail));
    if (before.dir !== "") element.dir = before.dir;
    element.append(...before.childNodes);
    before.replaceWith(element);
    return { ...place, element };
  }

  wrap(place: Place, kind: "emphasis"): Place {
    const element = create(place.element, TAGS[kind]);
    place.element.replaceWith(element);
    element.append(place.element);
    return { ...place, element };
  }

  aim({ element }: Place, address: string, image: boolean): void {
    for (const within of element.querySelectorAll("a")) within.replaceWith(...within.childNodes);
    const text = element.textContent ?? "";
    if (image && this.#options.image?.(new URL(address))) {
      const picture = create(element, "img") as HTMLImageElement;
      picture.alt = text;
      picture.loading = "lazy";
      picture.referrerPolicy = "no-referrer";
      picture.src = address;
      element.replaceWith(picture);
      return;
    }
    if (text === "" && element.firstElementChild === null) element.append(address);
    else if (text !== address && `${text}/` !== address) element.title = address;
    const link = element as HTMLAnchorElement;
    link.rel = "noopener noreferrer nofollow";
    link.target = "_blank";
    link.href = address;
  }

  loosen({ holder }: Place): void {
    for (const part of holder?.parts ?? []) part.classList.add("loose");
  }
}

/** The page's own headings, and those of the chat, are above: an answer's first level is the third. */
function tag(kind: keyof typeof TAGS | "heading", detail: string): string {
  return kind === "heading" ? `h${Math.min(Number(detail) + 2, 6)}` : TAGS[kind];
}

function holder(element: HTMLElement, direction: Direction | null): Place {
  return { element, leaf: null, holder: { parts: [element], count: 0 }, direction };
}

function leaf(element: HTMLElement, direction: Direction | null, end = /\s/g): Place {
  return { element, leaf: { element, end, part: element, size: 0 }, holder: null, direction };
}

/** Learn the direction of a block from its text. */
function direct(direction: Direction, text: string): void {
  const letter = LETTER.exec(text)?.[0];
  if (letter === undefined) return;
  direction.known = true;
  direction.element.dir = RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
}

/** Count one more, in another part if the last one is full. */
function next(place: Place, limit: number, more: (before: HTMLElement) => HTMLElement): Holder {
  const holder = place.holder as Holder;
  if (holder.count === limit) {
    const before = holder.parts.at(-1) as HTMLElement;
    holder.parts.push(more(before));
    holder.count = 0;
    if (!before.contains(holder.parts.at(-1) as HTMLElement)) {
      before.style.contentVisibility = "auto";
      before.style.containIntrinsicBlockSize = `auto ${limit * HEIGHT_EM}em`;
    }
  }
  holder.count++;
  return holder;
}

function create(near: HTMLElement, name: string): HTMLElement {
  return near.ownerDocument.createElement(name);
}

function append(parent: HTMLElement, name: string): HTMLElement {
  return parent.appendChild(create(parent, name));
}

/** Another element like this one, and empty. (A policy forbids a style that is cloned, not one that is set.) */
function like(element: HTMLElement): HTMLElement {
  const other = create(element, element.localName);
  for (const { name, value } of element.attributes) if (name !== "style") other.setAttribute(name, value);
  other.style.cssText = element.style.cssText;
  return other;
}

function beside(element: HTMLElement): HTMLElement {
  const part = like(element);
  element.after(part);
  return part;
}

/**
 * A long table goes on in others, each in a box like that of the first: their columns are as wide as they are there, or
 * find their own width where it is not shown. To who hears it, their frame is the one table.
 */
function freeze(table: HTMLTableElement, box: HTMLElement): void {
  const rows = [...table.rows];
  const most = Math.max(...rows.map((row) => row.cells.length));
  const longest = rows.find((row) => row.cells.length === most);
  const widths = [...(longest?.cells ?? [])].map((cell) => cell.getBoundingClientRect().width);
  const size = parseFloat(getComputedStyle(table).fontSize);
  const all = widths.reduce((sum, width) => sum + width, 0);
  box.style.minWidth = "max-content";
  if (all > 0 && size > 0) {
    const columns = create(table, "colgroup");
    for (const width of widths) append(columns, "col").style.width = `${width / size}em`;
    table.prepend(columns);
    table.style.tableLayout = "fixed";
    table.style.width = box.style.minWidth = `${all / size}em`;
  }
  box.parentElement?.setAttribute("role", "table");
  table.setAttribute("role", "presentation");
  for (const row of rows) describe(row);
}

function describe(row: HTMLTableRowElement): void {
  row.parentElement?.setAttribute("role", "rowgroup");
  row.setAttribute("role", "row");
  for (const cell of row.cells) cell.setAttribute("role", cell.localName === "th" ? "columnheader" : "cell");
}

/** The element that what is next within a place goes to. */
function inner({ element, leaf }: Place): HTMLElement {
  return leaf !== null && leaf.element === element ? leaf.part : element;
}

/** What scrolls can be scrolled by keyboard, too. */
function focusable(element: HTMLElement): void {
  element.tabIndex = 0;
  element.setAttribute("role", "group");
}

/** How much of a text the part still takes. */
function cut({ size, end }: Leaf, text: string): number {
  if (size + text.length < PART) return text.length;
  end.lastIndex = Math.max(PART - size, 0);
  const found = end.exec(text);
  const most = end.source === "\\n" ? Infinity : Math.max(PART_AT_MOST - size, 1);
  return Math.min(found === null ? text.length : found.index + 1, most);
}
