// Every word is said in every language that is in the widget, and English is said where a site gives none.

import { expect, test } from "vitest";
import { en } from "../src/words/en.ts";
import { fr } from "../src/words/fr.ts";
import { addLanguage, direction, languages, nameOf, onLanguage, preferred, words } from "../src/words/index.ts";

const SAME = ["log", "assistants", "sources", "contrast_normal", "lines_normal"]; // alike in both

test("French has every word, none of them empty, and none left in English", () => {
  const missing = Object.keys(en).filter((name) => !Object.hasOwn(fr, name) || fr[name] === "");
  expect(missing).toEqual([]);
  const alike = Object.entries(en).filter(([name, word]) => fr[name] === word);
  expect(alike.map(([name]) => name).sort()).toEqual([...SAME].sort());
});

test("French is set as the French set it: a space before what is of two parts, and curved apostrophes", () => {
  const wrong = Object.values(fr).filter((word) => /[^\s\u00a0\u202f][?!;:]/.test(word) || word.includes("'"));
  expect(wrong).toEqual([]);
});

test("a language that a site adds says English where it has no word, and is told to who waits for it", () => {
  const gone = new AbortController();
  let told = 0;
  onLanguage(() => told++, gone.signal);
  addLanguage("de-AT", "Deutsch", { send: "Senden" });
  expect(words("de", "send")).toBe("Senden");
  expect(words("de", "stop")).toBe("Stop");
  expect(words("de", "requests_per_hour", "Too many.")).toBe("Too many.");
  expect([languages(), nameOf("de"), preferred(["de-CH", "fr"])]).toEqual([["en", "fr", "de"], "Deutsch", "de"]);
  gone.abort();
  addLanguage("he", "עברית", {});
  expect([told, direction("he"), direction("de")]).toEqual([1, "rtl", ""]);
});

test("what the server says in English is said as it says it, and in French by its name", () => {
  expect(words("en", "requests_per_hour", "60 an hour.")).toBe("60 an hour.");
  expect(words("fr", "requests_per_hour", "60 an hour.")).toMatch(/^C’est beaucoup/);
  expect(words("fr", "a_new_limit", "More than is taken.")).toBe("More than is taken.");
  expect(words("fr", "toString", "")).toBe("toString");
});
