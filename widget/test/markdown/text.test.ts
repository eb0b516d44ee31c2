// Nothing that the model wrote may get lost.

import { expect, test } from "vitest";
import { texts } from "./generate.ts";
import { type Branch, read, textOf } from "./tree.ts";

const PIECES = [ // letters are text here, capitals are addresses and languages
  "*", "**", "_", "__", "~~", "`", "``", "\n", "\n\n", " ", "  ", "    ", "a", "b", "cd", "é", "](https://X.EXAMPLE)",
  "[", "]", "![", "](", "<", ">", "> ", "- ", "* ", "+ ", "#", "# ", "|", "| e | f |\n", "|-|-|\n", "\\", "&", "!", "\u{1F600}",
  "\n```PY\n", "\n```\n", "\n~~~\n", "---", "===", "e".repeat(60), " ".repeat(60), "https://F", "|---|", "[ ] ",
  "g h ",
]; // prettier-ignore

function addresses(node: Branch | string): string {
  return typeof node === "string" ? "" : node.address + node.detail + node.children.map(addresses).join("");
}

test("every letter of a text is shown, in its order, once", () => {
  for (const text of texts(20_000, 11, PIECES)) {
    if (/(?:`{3}|~{3})[^\n]*[a-zé\u{1F600}]/u.test(text)) continue; // of a fence's first line, the language is kept
    const letters = text.replace(/[^a-zé\u{1F600}]|https:/gu, "");
    const shown = textOf(read([text])).replace(/[^a-zé\u{1F600}]|https:/gu, "");
    expect(shown, text).toBe(letters);
  }
});

test("what was taken for an address is in a link's", () => {
  for (const text of texts(3_000, 12, PIECES)) {
    const root = read([text]);
    const all = textOf(root) + addresses(root).toUpperCase();
    expect(all.match(/X\.EXAMPLE/g)?.length ?? 0, text).toBeGreaterThanOrEqual(text.match(/X\.EXAMPLE/g)?.length ?? 0);
  }
});
