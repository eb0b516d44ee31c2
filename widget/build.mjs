// node build.mjs [--check]: makes what is served; with --check, fails where what is there is not what would be made.

import { readFile, mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const made = [
  { from: "src/script.ts", to: "widget.js", format: "iife" },
  { from: "src/index.ts", to: "motamot.mjs", format: "esm" },
];

async function bundled({ from, format }) {
  const { outputFiles } = await build({
    ...{ entryPoints: [here(from)], bundle: true, write: false, minify: true, format },
    ...{ target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" },
    plugins: [{ name: "styles", setup: (b) => b.onLoad({ filter: /styles\/[a-z]+\.ts$/ }, shorter) }],
  });
  return outputFiles[0].contents;
}

/** Styles are text to a minifier of scripts: they are made short by themselves. */
async function shorter({ path }) {
  const source = await readFile(path, "utf-8");
  const [, before, css] = /^(.*= )`([^`]*)`;\s*$/s.exec(source) ?? [];
  if (css === undefined) return undefined; // what puts them together
  const { code } = await transform(css, { loader: "css", minify: true, target: "es2022", charset: "utf8" });
  return { contents: `${before}${JSON.stringify(code.trim())};`, loader: "ts" };
}

const check = process.argv.includes("--check");
await mkdir(here("../src/motamot/server/widget"), { recursive: true });
for (const one of made) {
  const path = here(`../src/motamot/server/widget/${one.to}`);
  const contents = await bundled(one);
  if (!check) await writeFile(path, contents);
  else if (!Buffer.from(contents).equals(await readFile(path).catch(() => Buffer.alloc(0)))) {
    console.error(`src/motamot/server/widget/${one.to} is stale: make widget`);
    process.exitCode = 1;
  }
}
