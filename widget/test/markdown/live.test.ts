// What is shown while an answer comes: soon, and for good.

import { expect, test } from "vitest";
import { HELD, LINE, ROW } from "../../src/markdown/limits.ts";
import { answers } from "./answers.ts";
import { texts } from "./generate.ts";
import { read, textOf } from "./tree.ts";

const SYNTAX = 16; // units of marks that may be held besides: a run, a bracket

test("what is once shown of an answer stays, and more only comes after it", () => {
  for (const answer of answers.filter((one) => !one.startsWith("Unclosed"))) {
    const whole = textOf(read([answer]));
    for (let end = 1; end < answer.length; end++) {
      const now = textOf(read([answer.slice(0, end)], false));
      expect(whole.startsWith(now), answer.slice(0, end)).toBe(true);
    }
  }
});

test("what is held back is shorter than a line, or the rows that begin a table", () => {
  for (const text of [...answers, ...texts(300, 21)]) {
    for (let end = 1; end < text.length; end++) {
      const so_far = text.slice(0, end);
      const held = textOf(read([so_far])).length - textOf(read([so_far], false)).length;
      const last = so_far.split("\n").slice(-2).join("\n");
      expect(held, so_far).toBeLessThanOrEqual(last.includes("|") ? 2 * ROW : Math.max(HELD, LINE) + SYNTAX);
    }
  }
});

test("plain words are shown in the call that brings them", () => {
  const words = "Some plain words, as most of an answer is: it's 5 p.m., so-called, (in brackets) and more. ".split(/(?<= )/);
  for (const begin of ["", "# ", "- ", "> ", "1. ", "| a |\n|---|\n| ", "**", "*a `b` ", "```\n"]) {
    let so_far = begin;
    for (const word of words) {
      so_far += word;
      expect(textOf(read([so_far], false))).toContain(word.trimEnd());
    }
  }
});

test("a mark that was not one is shown as it was when the block ends", () => {
  const root = read(["**a `b [c](https://x.exam"], false);
  expect(textOf(root)).toBe("a b [c](https://x.exam"); // in bold, and code
  expect(textOf(read(["**a `b [c](https://x.exam\n\n"], false))).toBe("**a `b [c](https://x.exam");
});
