// Texts that are full of Markdown, and of what nearly is.

const PIECES = [
  "*", "**", "***", "_", "__", "~~", "`", "``", "```", "~~~", "\n", "\n\n", " ", "  ", "    ", "\t", "a", "b c", "h",
  "http", "https://x.example", "https://x.example/a", "(", ")", "[", "]", "![", "](", "](https://q.example)", "<",
  "<https://x.example>", ">", "> ", "- ", "* ", "1. ", "2) ", "#", "# ", "## ", "|", "| a | b |\n", "|---|---|\n",
  "a | b\n", "--- | ---\n", "---", "===", "\\", "\\|", "&", "&amp;", "&#39;", "&copy", "!", "\u{1F600}", "é", "中文。",
  "\r\n", "\r", "[ ] ", "[x] ", "+", "word ", "<div>", "mailto:", "\0", ".", " ".repeat(60), "#".repeat(60),
  "x".repeat(60), "`".repeat(20), "[1]", "2*3", "snake_case",
]; // prettier-ignore

/** The same numbers each time: 0 to 1. */
export function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function* texts(count: number, seed: number, pieces: readonly string[] = PIECES): Generator<string> {
  const next = random(seed);
  for (let index = 0; index < count; index++) {
    let text = "";
    for (let length = 1 + next() * 25; length > 0; length--) text += pieces[Math.floor(next() * pieces.length)];
    yield text;
  }
}
