// What is made of what, and why where it is not what CommonMark makes of it.

import { describe, expect, test } from "vitest";
import { line, read, shown } from "./tree.ts";

function table(rows: Record<string, string>): void {
  test.each(Object.entries(rows))("%j", (source, tree) => expect(shown(source)).toBe(tree));
}

describe("emphasis", () =>
  table({
    "a *b* **c** ***d*** _e_ __f__":
      'paragraph("a " emphasis("b") " " strong("c") " " emphasis(strong("d")) " " emphasis("e") " " strong("f"))',
    "***a* b**": 'paragraph(strong(emphasis("a") " b"))',
    "***a** b*": 'paragraph(emphasis(strong("a") " b"))',
    "**a* b*": 'paragraph(emphasis(emphasis("a") " b"))',
    "**a*": 'paragraph("*" emphasis("a"))',
    "*a **b*": 'paragraph("*a *" emphasis("b"))',
    "2 ** 3, a_b_c, 3*4, *x": 'paragraph("2 ** 3, a_b_c, 3*4, *x")',
    "~~a~~ ~b~ ~5 ~6": 'paragraph(strike("a") " ~b~ ~5 ~6")',
    "**a\n\nb**": 'paragraph("**a") paragraph("b**")',
  }));

describe("code", () =>
  table({
    "`a` ``b`c`` `` ` ``": 'paragraph(code("a") " " code("b`c") " " code("`"))',
    "` a` ` b ` `  `": 'paragraph(code(" a") " " code("b") " " code("  "))',
    "`a **b**": 'paragraph("`a " strong("b"))',
    "*a `b*`": 'paragraph("*a " code("b*"))',
    "`a\nb`": 'paragraph(code("a b"))',
    "```py x\na\n\n b\n```\nc": 'fence=py("a\\n\\n b") paragraph("c")',
    "~~~\n```\n~~~~": 'fence("```")',
    "```\nopen\n": 'fence("open")',
    "``` a`b\nc": 'paragraph("``` a`b\\nc")',
    "- ```\n  a\n   b\n  ```": 'list(item(fence("a\\n b")))',
    "    a": 'paragraph("    a")', // no code by indentation
  }));

describe("links", () =>
  table({
    "[a](https://x.example) [b](<https://x.example/ y>) [c](https://x.example/(1) 't')":
      'paragraph(link<https://x.example/>("a") " [b](<" link<https://x.example/>("https://x.example/") " y>) " link<https://x.example/(1)>("c"))',
    "[*a* `]` b](https://x.example)": 'paragraph(link<https://x.example/>(emphasis("a") " " code("]") " b"))',
    "[a [b](https://b.example) c](https://c.example)":
      'paragraph("[a " link<https://b.example/>("b") " c](" link<https://c.example/>("https://c.example") ")")',
    "*[a*](https://x.example)": 'paragraph("*" link<https://x.example/>("a*"))',
    "[1] [a][b] [x]( [y] (z) [w](": 'paragraph("[1] [a][b] [x]( [y] (z) [w](")',
    "![a](https://x.example/i.png)": 'paragraph(link<https://x.example/i.png>!("a"))',
    "[![a](https://i.example)](https://x.example)":
      'paragraph(link<https://x.example/>(link<https://i.example/>!("a")))',
    "<https://x.example/a> <me@x.example> <mailto:me@x.example> <b>":
      'paragraph(link<https://x.example/a>("https://x.example/a") " " link<mailto:me@x.example>("me@x.example") " " link<mailto:me@x.example>("mailto:me@x.example") " <b>")',
    "(see https://x.example/a_(b)). **https://y.example**":
      'paragraph("(see " link<https://x.example/a_(b)>("https://x.example/a_(b)") "). " strong(link<https://y.example/>("https://y.example")))',
    "https://x.example/?a=1&amp;b=2&lt;c xhttps://y.example http:// https://":
      'paragraph(link<https://x.example/?a=1&b=2>("https://x.example/?a=1&b=2") "<c xhttps://y.example http:// https://")',
    "见https://x.example。": 'paragraph("见https://x.example。")', // within a word
    "见 https://x.example。好": 'paragraph("见 " link<https://x.example/>("https://x.example") "。好")',
  }));

describe("what is not surely harmless is not followed", () => {
  test.each([
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "&#106;avascript:alert(1)", "java&Tab;script:alert(1)", "data:text/html,x",
    "vbscript:x", "file:///etc/passwd", "//x.example", "/path", "#id", "?q", "path", "x.example", "\\\\x.example", "https:/x",
    "https:\\\\x.example", "https:///x.example", "https://x.example\\@y.example", "https://bank.example@x.example",
    "https://a:b@x.example", "ftp://x.example", "https&colon;//x.example&Tab;", "<javascript:alert(1)>", "< https://x.example>",
    "https://x.example/&#10;y", "https://x.example/&#8238;gnp.exe", "mailto://x", "blob:https://x.example/1", "https://",
    "\u0001javascript:alert(1)", "feed:https://x.example", "view-source:https://x.example", "https://[x", "mailto:",
  ])("%j", (address) => {
    for (const source of [`[a](${address})`, `![a](${address})`, `<${address}>`, `[a](<${address}>)`]) {
      const tree = shown(source);
      expect(tree).not.toMatch(/link<(?!https?:\/\/|mailto:)[^>]+>/);
      expect(tree).not.toMatch(/link<[^>]+>!?\("a"\)/);
    }
  });
}); // prettier-ignore

describe("blocks", () =>
  table({
    "a\n  b  \nc": 'paragraph("a\\n  b  \\nc")', // line ends and spaces stay
    "a\\\nb": 'paragraph("a\\nb")',
    "# A #\n## B\\##\n#c\n####### d": 'heading=1("A") heading=2("B##") paragraph("#c\\n####### d")',
    "A\n===\nB\n---\nC": 'heading=1("A") paragraph("B") rule() paragraph("C")',
    "***\n- - -\n_ _ _ _": "rule() rule() rule()",
    "> a\nb\n\n> c\n>> d": 'quote(paragraph("a\\nb")) quote(paragraph("c") quote(paragraph("d")))',
    "- a\n- b\n\n  c\n+ d": 'list~(item(paragraph("a")) item(paragraph("b") paragraph("c"))) list(item(paragraph("d")))',
    "- a\n  - b\n    1) c\n- d":
      'list(item(paragraph("a") list(item(paragraph("b") list=1(item(paragraph("c")))))) item(paragraph("d")))',
    "7. a\n8. b": 'list=7(item(paragraph("a")) item(paragraph("b")))',
    "In\n1986. A year\n- x": 'paragraph("In\\n1986. A year") list(item(paragraph("x")))',
    "- [ ] a\n- [x] b\n- [y] c\n- [ ]": 'list(item(task("a")) item(task=x("b")) item(paragraph("[y] c")) item(paragraph("[ ]")))',
    "-\n\n  a": 'list(item()) paragraph("a")',
    "\t- a\n\t\t- b": 'paragraph("\\t- a\\n\\t\\t- b")',
    "- a\n\t- b": 'list(item(paragraph("a") list(item(paragraph("b")))))',
    "a\r\nb\rc\0": 'paragraph("a\\nb\\nc\ufffd")',
    "<b>&lt;&eacute;&#x1F600;&#0;&bogus;&": 'paragraph("<b><é😀\ufffd&bogus;&")',
    "": "",
    "\n\n": "",
  }));

describe("tables", () =>
  table({
    "| a | b |\n|:-:|--:|\n| *1* | `x\\|y` |\n| 2 |\n\nc":
      'table(head(cell=center("a") cell=right("b")) row(cell=center(emphasis("1")) cell=right(code("x|y"))) row(cell=center("2"))) paragraph("c")',
    "a | b\n--- | ---\nc": 'table(head(cell("a") cell("b")) row(cell("c")))',
    "x:\n| a |\n|---|\n| b | c |": 'paragraph("x:") table(head(cell("a")) row(cell("b") cell("c")))',
    "a | b\n- | -": 'paragraph("a | b") list(item(paragraph("| -")))',
    "| a |\n| b |\nc": 'paragraph("| a |\\n| b |\\nc")',
    "| a | b |\n|---|\nc": 'paragraph("| a | b |\\n|---|\\nc")',
    "| a |": 'paragraph("| a |")',
    "| a || b |\n|-|-|-|": 'table(head(cell("a") cell() cell("b")))',
    "> | a |\n> |---|\n> | b |\n- c": 'quote(table(head(cell("a")) row(cell("b")))) list(item(paragraph("c")))',
    "- x\n\n| a |\n|---|": 'list(item(paragraph("x"))) table(head(cell("a")))',
    "|a|\n|-|\n| **b |": 'table(head(cell("a")) row(cell("**b")))',
  }));

describe("while it comes", () => {
  test.each([
    ["Hello", 'paragraph("Hello")'],
    ["a **b", 'paragraph("a " strong("b"))'],
    ["a **b c*", 'paragraph("a " strong("b c"))'],
    ["a `b", 'paragraph("a " code("b"))'],
    ["a [b](https://x.exam", 'paragraph("a " link("b"))'],
    ["see [1", 'paragraph("see ")'],
    ["see https://x.exam", 'paragraph("see " link("https://x.exam"))'],
    ["```py", ""],
    ["```py\nx", 'fence=py("x")'],
    ["| a | b |\n|--", ""],
    ["| a | b |\n|--|--|\n| c", 'table(head(cell("a") cell("b")) row(cell("c")))'],
    ["# Ti", 'heading=1("Ti")'],
    ["- a", 'list(item(paragraph("a")))'],
    ["1. **a", 'list=1(item(paragraph(strong("a"))))'],
    ["> a", 'quote(paragraph("a"))'],
  ])("%j shows what is certain", (source, tree) => {
    expect(line(read([source], false))).toBe(tree);
    expect(line(read(source.split(""), false))).toBe(tree);
  });
});
