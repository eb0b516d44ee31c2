// node node_reader.mjs decoder.ts: cases as JSON on standard input, readings as JSON on standard output.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { everyCut } from "./every_cut.js";

const { Decoder } = await import(pathToFileURL(process.argv[2]));
process.stdout.write(JSON.stringify(everyCut(Decoder, JSON.parse(readFileSync(0, "utf-8")))));
