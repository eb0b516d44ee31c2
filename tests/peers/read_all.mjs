// node read_all.mjs: streams as JSON on standard input (each a list of reads in base64), readings as JSON on output.

import { readFileSync } from "node:fs";
import { READERS } from "./readers.mjs";

const streams = JSON.parse(readFileSync(0, "utf-8"));
const readings = [];
for (const stream of streams) {
  const reading = {};
  for (const [name, read] of Object.entries(READERS)) {
    let shown = "", threw = null;
    try {
      await read(stream.map((text) => Uint8Array.from(Buffer.from(text, "base64"))), (text) => (shown = text));
    } catch (error) {
      threw = error instanceof SyntaxError ? "SyntaxError" : error.message;
    }
    reading[name] = { text: shown, threw };
  }
  readings.push(reading);
}
process.stdout.write(JSON.stringify(readings));
