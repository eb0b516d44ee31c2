import { expect, test } from "vitest";
import { random, texts } from "./generate.ts";
import { answers } from "./answers.ts";
import { line, read } from "./tree.ts";

test("what is shown of any text does not depend on whether it came whole or one unit at a time", () => {
  for (const text of texts(20_000, 1)) expect(line(read(text.split("")))).toBe(line(read([text])));
});

test("no single cut of a text, also within a surrogate pair, changes what is shown", () => {
  for (const text of [...texts(300, 2), ...answers]) {
    const whole = line(read([text]));
    for (let cut = 1; cut < text.length; cut++) expect(line(read([text.slice(0, cut), text.slice(cut)]))).toBe(whole);
  }
});

test("long texts without an end of what they begin do not depend on the cut", () => {
  const begun = "*a |**|[|[a |[a](b |`a|``|https://a|<a|&a|- |> |# |#| ".split("|").concat("|a");
  const next = random(3);
  for (const text of begun.flatMap((one) => [one.repeat(1500), `${one}${"x ".repeat(2600)}${one}`])) {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; at += pieces.at(-1)?.length ?? 0) {
      pieces.push(text.slice(at, at + 1 + Math.floor(next() * 40)));
    }
    const whole = line(read([text]));
    expect(line(read(pieces))).toBe(whole);
    expect(line(read(text.split("")))).toBe(whole);
  }
});

test("pieces that hold nothing change nothing", () => {
  for (const text of texts(200, 4)) {
    const units = text.split("").flatMap((unit) => ["", unit, ""]);
    expect(line(read(units))).toBe(line(read([text])));
  }
});
