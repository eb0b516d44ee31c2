// A renderer that keeps what it is told, in place of a page.

import { Parser } from "../../src/markdown/parser.ts";
import type { Kind, Renderer } from "../../src/markdown/renderer.ts";

export interface Branch {
  kind: Kind | "root";
  detail: string;
  children: (Branch | string)[];
  parent: Branch | null;
  address: string;
  image: boolean;
  loose: boolean;
}

export class Tree implements Renderer<Branch> {
  readonly root = branch("root", "", null);

  open(parent: Branch, kind: Kind, detail: string): Branch {
    const made = branch(kind, detail, parent);
    parent.children.push(made);
    return made;
  }

  text(place: Branch, text: string): void {
    if (text === "") throw new Error("an empty text");
    place.children.push(text);
    tidy(place);
  }

  lead(place: Branch, text: string): void {
    place.children.unshift(text);
    tidy(place);
  }

  unwrap(place: Branch, text: string): void {
    this.#replace(place, [text, ...place.children]);
  }

  remove(place: Branch): void {
    this.#replace(place, []);
  }

  turn(place: Branch, kind: Kind, detail: string): Branch {
    const made = branch(kind, detail, place.parent);
    for (const child of place.children) if (typeof child !== "string") child.parent = made;
    made.children = place.children;
    this.#replace(place, [made]);
    return made;
  }

  wrap(place: Branch, kind: Kind): Branch {
    const made = branch(kind, "", place.parent);
    this.#replace(place, [made]);
    made.children = [place];
    place.parent = made;
    return made;
  }

  aim(place: Branch, address: string, image: boolean): void {
    Object.assign(place, { address, image });
  }

  loosen(list: Branch): void {
    list.loose = true;
  }

  #replace(place: Branch, children: (Branch | string)[]): void {
    const parent = place.parent as Branch;
    parent.children.splice(parent.children.indexOf(place), 1, ...children);
    for (const child of children) if (typeof child !== "string") child.parent = parent;
    tidy(parent);
  }
}

function branch(kind: Kind | "root", detail: string, parent: Branch | null): Branch {
  return { kind, detail, parent, children: [], address: "", image: false, loose: false };
}

function tidy(place: Branch): void {
  const tidied: (Branch | string)[] = [];
  for (const child of place.children) {
    const last = tidied.at(-1);
    if (typeof child === "string" && typeof last === "string") tidied[tidied.length - 1] = last + child;
    else if (child !== "") tidied.push(child);
  }
  place.children = tidied;
}

/** What is made of a text that comes in these pieces. */
export function read(pieces: Iterable<string>, end = true): Branch {
  const tree = new Tree();
  const parser = new Parser(tree, tree.root);
  for (const piece of pieces) parser.write(piece);
  if (end) parser.end();
  return tree.root;
}

/** A tree as one line: `paragraph("a" strong("b"))`. */
export function line(node: Branch | string): string {
  if (typeof node === "string") return JSON.stringify(node);
  const marks = [node.detail && `=${node.detail}`, node.loose ? "~" : "", node.address && `<${node.address}>`];
  const children = node.children.map(line).join(" ");
  return node.kind === "root" ? children : `${node.kind}${marks.join("")}${node.image ? "!" : ""}(${children})`;
}

export function shown(source: string): string {
  return line(read([source]));
}

/** The text that stands on the page. */
export function textOf(node: Branch | string): string {
  return typeof node === "string" ? node : node.children.map(textOf).join("");
}
