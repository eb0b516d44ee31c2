// Answers as models write them.

export const answers = [
  "Here's how to do it:\n\n1. **Install** the package:\n   ```bash\n   pip install motamot\n   ```\n2. Run `motamot init`, then\n   *edit* the file.\n3. Start it:\n\n   ```bash\n   motamot serve\n   ```\n\nThat's all! See [the docs](https://docs.example/start) for more.",
  "# Title\n\nSome **bold text**, some *italic*, `inline code`, and ~~struck~~.\n\n## Steps\n\n- First\n- Second\n  - Nested one\n  - Nested two\n    - Deep\n- Third\n\n> A quote\n> over two lines\n\n---\n\nEnd.",
  "| Name | Age | City |\n|------|:---:|-----:|\n| Ana  | 31  | Paris |\n| Bo   | 7   | Lyon |\n\nThe table shows **two** people.",
  "Pour calculer `2 ** 3`, on écrit :\n\n```python\nx = 2 ** 3\nprint(x)  # 8\n```\n\nRésultat : 8. Attention à snake_case et à __init__.py, et à 5 * 3 * 2.",
  "Sure! Let's compare:\n\n| Feature | A | B |\n|---|---|---|\n| Price | $5 | $10 |\n| Pipes | `a\\|b` | c |\n\n**Note:** prices are in *USD*.\n\n1. One\n2. Two\n\n   Still two.\n\n3. Three",
  "The formula is E = mc^2. If a < b and b > c then a & c...\n\n* item *with emphasis*\n* item with `code`\n* **Bold:** and text\n\n***Both***\n\n_under_ and __double under__.",
  "- [ ] write tests\n- [x] write code\n- [ ] rest\n\nLinks: <https://auto.example/x>, https://bare.example/path?q=1&r=2, [named](https://named.example \"title\"), and mail <me@mail.example>.",
  "A poem:\n\nRoses are red,\n  violets are blue,\nline ends stay,\n  and spaces too.\n\nBackslash \\*not emphasis\\* and entity &amp; &lt;b&gt; &copy; &eacute;.",
  "### Code in list\n\n- Item:\n\n  ```js\n  const a = [1, 2];\n  if (a[0] < a[1]) {\n      go();\n  }\n  ```\n\n- Next item\n\nDone.",
  "<thinking>not a tag</thinking>\n\n<div>HTML is <b>text</b></div>\n\nUse `<br>` or &nbsp; here.",
  "Quote with list:\n\n> - one\n> - two\n>\n> ```\n> code\n> ```\n\nand after.",
  "مرحبا **بالعالم** هذا `كود` \n\n- عنصر\n- آخر\n\n你好，**世界**。这是`代码`。访问 https://例え.example/路径。谢谢",
  "Emoji 👩‍👩‍👧 and **flags 🇫🇷**\n\n![alt text](https://img.example/x.png)\n\n[![badge](https://img.example/b.svg)](https://ci.example)",
  "Dialog:\n**Alice:** Hi!\n**Bob:** Hello.\n\nFootnote[1] and array[0] and [see below].\n\n[1]: not a link",
  "1) one\n2) two\n\n10. ten\n11. eleven\n\n+ plus\n+ list\n\nText right before a list:\n- a\n- b\nText right after.",
  "Unclosed **bold and `code and [link](https://x.example\n\nNext paragraph is *fine*.",
  "````markdown\n```js\nnested();\n```\n````\n\n~~~\ntilde\n~~~",
  "# One #\n## Two ##\n###### Six\n####### seven\n#no heading\n\nSetext\n===\n\n***\n___\n- - -",
];
