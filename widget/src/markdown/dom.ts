// The answer as elements of the page: made with createElement and text nodes alone, so that what a model wrote is never
// read as HTML, and a page's Content-Security-Policy and Trusted Types have nothing to object to.

import type { Kind, Renderer } from "./renderer.ts";

export interface MarkdownOptions {
  /** Whether an image of this address may be fetched; default: none is (then it is shown as a link with its alt text). */
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
/** UTF-16 units after which text goes on in another node: what is appended to is copied. */
const NODE = 4000;

/** A block that holds text, with all that is within its text. */
interface Leaf {
  readonly element: HTMLElement;
  readonly end: RegExp; // where it may go on in another part
  part: HTMLElement; // where it goes on
  size: number; // UTF-16 units in that part
}

export interface Place {
  readonly element: HTMLElement;
  readonly leaf: Leaf | null; // null: holds blocks
}

const TAGS = {
  paragraph: "p",
  quote: "blockquote",
  item: "li",
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

  constructor(root: Place, options: MarkdownOptions) {
    this.#root = root;
    this.#options = options;
  }

  open(parent: Place, kind: Kind, detail: string): Place {
    switch (kind) {
      case "paragraph":
        return leaf(this.#block(parent, "p"));
      case "heading": // the page's own headings and the answer's are above: an answer's first level is the page's third
        return leaf(this.#block(parent, `h${Math.min(Number(detail) + 2, 6)}`));
      case "list":
        return this.#list(parent, detail);
      case "task":
        return this.#task(parent, detail);
      case "fence":
        return this.#fence(parent, detail);
      case "table":
        return this.#table(parent);
      case "head":
        return holder(this.#append(this.#append(parent.element, "thead"), "tr"));
      case "row": {
        const last = parent.element.lastElementChild as HTMLElement;
        return holder(this.#append(last.localName === "tbody" ? last : this.#append(parent.element, "tbody"), "tr"));
      }
      case "cell":
        return this.#cell(parent, detail);
      case "quote":
      case "rule":
        return holder(this.#block(parent, TAGS[kind]));
      case "item":
        return holder(this.#append(parent.element, TAGS[kind]));
      default: {
        const element = this.#append(inner(parent), TAGS[kind]);
        if (kind === "code") element.dir = "ltr";
        return { element, leaf: parent.leaf };
      }
    }
  }

  /**
   * A block at the outermost level finds its direction in its own text; what is within follows it: a list whose items
   * chose for themselves would have the room for their marks on the wrong side.
   */
  #block(parent: Place, tag: string): HTMLElement {
    const element = this.#append(parent.element, tag);
    if (parent === this.#root) element.dir = "auto";
    return element;
  }

  #append(parent: HTMLElement, tag: string): HTMLElement {
    return parent.appendChild(parent.ownerDocument.createElement(tag));
  }

  #list(parent: Place, start: string): Place {
    const list = this.#block(parent, start === "" ? "ul" : "ol");
    if (start !== "" && start !== "1") list.setAttribute("start", start);
    return holder(list);
  }

  #task(parent: Place, done: string): Place {
    const place = leaf(this.#append(this.#append(parent.element, "p"), "label"));
    const box = this.#append(place.element, "input") as HTMLInputElement;
    box.type = "checkbox";
    box.disabled = true;
    box.defaultChecked = done !== "";
    return place;
  }

  #fence(parent: Place, language: string): Place {
    const block = this.#append(parent.element, "div");
    block.className = "code";
    block.dir = "ltr";
    const frame = this.#append(block, "pre");
    focusable(frame);
    const code = this.#append(frame, "code");
    if (language !== "") {
      code.className = `language-${language}`;
      block.dataset["language"] = language;
      frame.setAttribute("aria-label", language);
    }
    this.#options.code?.(block, () => code.textContent ?? "");
    return leaf(code, /\n/g);
  }

  #table(parent: Place): Place {
    const frame = this.#block(parent, "div");
    frame.className = "table";
    focusable(frame);
    return holder(this.#append(frame, "table"));
  }

  #cell(parent: Place, align: string): Place {
    const heads = parent.element.parentElement?.localName === "thead";
    const cell = this.#append(parent.element, heads ? "th" : "td");
    if (heads) cell.setAttribute("scope", "col");
    if (align !== "") cell.style.textAlign = align;
    return leaf(cell);
  }

  text(place: Place, text: string): void {
    const leaf = place.leaf as Leaf;
    if (place.element !== leaf.element) {
      append(place.element, text);
      leaf.size += text.length;
      return;
    }
    for (let end = cut(leaf, text); ; end = cut(leaf, text)) {
      append(leaf.part, text.slice(0, end));
      leaf.size += end;
      text = text.slice(end);
      if (text === "") break;
      leaf.part = this.#append(leaf.element, "span");
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
    if (isText(before) && before.length < NODE) { // a node for each mark that meant nothing would be many
      before.appendData(isText(first) ? text + first.data : text);
      if (isText(first)) first.remove();
    } else if (text !== "") element.before(text);
    element.replaceWith(...element.childNodes);
  }

  remove({ element }: Place): void {
    element.remove();
  }

  turn(place: Place, kind: Kind, detail: string): Place {
    const beside = holder(place.element.parentElement as HTMLElement);
    const { element } = this.open(beside.element === this.#root.element ? this.#root : beside, kind, detail);
    element.append(...place.element.childNodes);
    place.element.replaceWith(element);
    return { element, leaf: place.leaf };
  }

  wrap(place: Place, kind: "emphasis"): Place {
    const element = place.element.ownerDocument.createElement(TAGS[kind]);
    place.element.replaceWith(element);
    element.append(place.element);
    return { element, leaf: place.leaf };
  }

  aim({ element }: Place, address: string, image: boolean): void {
    for (const within of element.querySelectorAll("a")) within.replaceWith(...within.childNodes);
    const text = element.textContent ?? "";
    if (image && this.#options.image?.(new URL(address))) {
      const picture = element.ownerDocument.createElement("img");
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

  loosen({ element }: Place): void {
    element.classList.add("loose");
  }
}

function holder(element: HTMLElement): Place {
  return { element, leaf: null };
}

function leaf(element: HTMLElement, end = /\s/g): Place {
  return { element, leaf: { element, end, part: element, size: 0 } };
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

function isText(node: Node | null): node is Text {
  return node !== null && node.nodeType === 3;
}

function append(element: HTMLElement, text: string): void {
  const last = element.lastChild;
  if (isText(last) && last.length < NODE) last.appendData(text);
  else element.append(text);
}

/** How much of a text the part still takes. */
function cut({ size, end }: Leaf, text: string): number {
  if (size + text.length < PART) return text.length;
  end.lastIndex = Math.max(PART - size, 0);
  const found = end.exec(text);
  const most = end.source === "\\n" ? Infinity : Math.max(PART_AT_MOST - size, 1);
  return Math.min(found === null ? text.length : found.index + 1, most);
}
