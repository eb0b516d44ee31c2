// Beside markdown-it, over the examples of CommonMark's specification and answers as models write them: in the end the
// same text is visible, but for what is listed here.

import specification from "commonmark-spec";
import MarkdownIt from "markdown-it";
import { expect, test } from "vitest";
import { harmless } from "../../src/markdown/address.ts";
import { answers } from "./answers.ts";
import { line, read, textOf } from "./tree.ts";

const peer = new MarkdownIt({ html: false, linkify: true });
peer.disable(["reference", "code"]); // no definitions that come later, and no code by indentation: see parser.ts
peer.normalizeLinkText = (address) => address;
peer.validateLink = (address) => harmless(address) !== null;

const NOT_FOLLOWED = "the address is not followed, by rules that markdown-it does not ask about";
const ACCEPTED: Record<number, string> = {
  20: "a backslash in an address is a trick",
  25: "five references that HTML 5 has and HTML 4 has not",
  81: "a paragraph of several lines does not become a heading when its underline comes",
  82: "a paragraph of several lines does not become a heading when its underline comes",
  215: "a paragraph of several lines does not become a heading when its underline comes",
  485: NOT_FOLLOWED, // ""
  487: NOT_FOLLOWED,
  489: NOT_FOLLOWED, // a space
  507: NOT_FOLLOWED, // a no-break space
  567: NOT_FOLLOWED,
  603: "a backslash in an address is a trick",
};
const TASKS = /^(\s*[-*+] )\[[ x]\] /gm; // markdown-it has no tasks

function peerText(source: string): string {
  let text = "";
  const walk = (tokens: ReturnType<typeof peer.parse>): void => {
    for (const token of tokens) {
      if (token.type === "softbreak" || token.type === "hardbreak") text += "\n";
      else if (token.type === "image" || token.type === "inline") walk(token.children ?? []);
      else text += token.content;
    }
  };
  walk(peer.parse(source, {}));
  return text;
}

/** Spaces at the ends of lines, and between blocks, are not what this is about. */
function bare(text: string): string {
  return text.replace(/\s+/g, "");
}

/** Most of the specification's links lead to places relative to the page, which ours do not follow. */
function absolute(source: string): string {
  const led = source.replace(/\]\((\s*<?)([/#?\w.]+)(?=[\s)>(])/g, "]($1https://x.example/$2");
  return led.replace(/https:\/\/x\.example\/(?=https?:)/g, "");
}

test("the visible text of the specification's examples is markdown-it's", () => {
  expect(specification.tests.length).toBeGreaterThan(600);
  let links = 0;
  for (const { markdown, number } of specification.tests) {
    const source = absolute(markdown.replaceAll("→", "\t"));
    const root = read([source]);
    if (number in ACCEPTED) expect(bare(textOf(root)), `no longer differs: ${number}`).not.toBe(bare(peerText(source)));
    else expect(bare(textOf(root)), source).toBe(bare(peerText(source)));
    links += line(root).split("link<").length - 1;
  }
  expect(links).toBeGreaterThan(60); // it is compared with links that are some
});

test("the visible text of models' answers is markdown-it's", () => {
  for (const answer of answers) expect(bare(textOf(read([answer])))).toBe(bare(peerText(answer.replace(TASKS, "$1"))));
});
