// Elements by their names and attributes, never from markup: what a stranger wrote can become text and nothing else,
// and a page's Content-Security-Policy and Trusted Types have nothing to object to.

/** An element. attributes: as in HTML, without `style` and `on…`; children: strings become text. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * What the document itself has. An element of the page that is named like it (`<img name="body">`) stands in its place
 * in `document.body`. Source: WHATWG HTML, "DOM tree accessors", named properties of Document.
 */
export function own<K extends "body" | "currentScript" | "documentElement" | "hidden">(name: K): Document[K] {
  return Object.getOwnPropertyDescriptor(Document.prototype, name)?.get?.call(document) as Document[K];
}

const SVG = "http://www.w3.org/2000/svg";

/** Paths on a ground of 20 by 20. */
const PICTURES = {
  plus: "M10 4v12M4 10h12",
  bin: "M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6",
  down: "M10 4v12M5 11l5 5 5-5",
  up: "M10 16V4M5 9l5-5 5 5",
  halt: "M6 6h8v8H6z",
  copy: "M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3",
  fold: "M5 8l5 5 5-5",
  done: "M4.5 10.5l3.5 3.5 7.5-8",
  again: "M15.5 10a5.5 5.5 0 1 1-1.6-3.9L16 8.2M16 4.2v4h-4",
  close: "M5 5l10 10M15 5L5 15",
  letters: "M2.5 15.5l4-11 4 11M3.9 11.8h5.2M12 15.5l2.8-7.5 2.8 7.5M13 13h3.6",
  talk: "M4 4.5h12v8.5h-7l-3.5 3v-3H4z",
} as const;

/** A picture, for the eye alone: what stands beside it, or its button's label, says what it means. */
export function picture(name: keyof typeof PICTURES, kind = ""): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg") as SVGSVGElement;
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PICTURES[name]);
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  if (kind !== "") svg.setAttribute("class", kind);
  svg.append(path);
  return svg;
}

const sheets = new WeakMap<Document, Map<string, CSSStyleSheet>>(); // a sheet is of its document, and of no other

/** Let a shadow root have these styles. (A constructed sheet: no policy forbids it, and no page's rule reaches in.) */
export function dress(root: ShadowRoot, css: string): void {
  const { ownerDocument: page } = root;
  const made = sheets.get(page) ?? new Map<string, CSSStyleSheet>();
  sheets.set(page, made);
  let sheet = made.get(css);
  if (sheet === undefined) {
    sheet = new (page.defaultView ?? globalThis).CSSStyleSheet();
    sheet.replaceSync(css);
    made.set(css, sheet);
  }
  root.adoptedStyleSheets = [sheet];
}
