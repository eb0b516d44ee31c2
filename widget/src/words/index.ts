// What is said in each language.

import { en } from "./en.ts";
import { fr } from "./fr.ts";

/** The name of something that we say. */
export type Word = keyof typeof en;

/** A language: every word there is, and what else the server may say, by the limit or the code that it names. */
export type Words = Readonly<Record<Word, string>> & Readonly<Record<string, string>>;

const all = new Map<string, { words: Words; name: string }>([
  ["en", { words: en, name: "English" }],
  ["fr", { words: fr, name: "Français" }],
]);

const told = new Set<() => void>();

/** Be told when there is another language. */
export function onLanguage(added: () => void, gone: AbortSignal): void {
  told.add(added);
  gone.addEventListener("abort", () => told.delete(added));
}

/** Languages that are written from right to left. */
const LEFTWARDS = ["ar", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"];

/** How a language is written: "" as its surroundings are. */
export function direction(language: string): "rtl" | "" {
  return LEFTWARDS.includes(language) ? "rtl" : "";
}

/** The languages there are, by their primary tag (`fr`). */
export function languages(): string[] {
  return [...all.keys()];
}

/** Whether there is such a language. */
export function isLanguage(tag: unknown): tag is string {
  return typeof tag === "string" && all.has(tag);
}

/** Have another language. name: as it calls itself; words: those that are missing are said in English. */
export function addLanguage(tag: string, name: string, words: Readonly<Record<string, string>>): void {
  all.set(primary(tag), { words: { ...en, ...words }, name });
  for (const added of told) added();
}

/** What a language calls itself. */
export function nameOf(language: string): string {
  return all.get(language)?.name ?? language;
}

/** The first language there is of those that are wanted (`["fr-CA", "en"]`), if any. */
export function preferred(wanted: readonly string[]): string | undefined {
  return wanted.map(primary).find((language) => all.has(language));
}

function primary(tag: string): string {
  return tag.toLowerCase().split("-")[0] ?? "";
}

/**
 * Words by their name.
 * told: the server's own words, in English, which say more than ours do; other languages use them where they have none.
 */
export function words(language: string, name: string, told = ""): string {
  if (language === "en" && told !== "") return told;
  const known = all.get(language)?.words ?? en;
  if (Object.hasOwn(known, name)) return known[name as Word];
  return told || (Object.hasOwn(en, name) ? en[name as Word] : name);
}
