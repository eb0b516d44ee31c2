// Client libraries from npm, each by the call that its users make.
//
//   node runner.mjs SECONDS FOLDER…      FOLDER: where packages are installed (holds, or is, a node_modules)
//
// First line out: {"node": version, "found": {library: version}, "missing": {library: problem}}. Then one line of JSON
// in, one out: {"library", "url", "names"} or {"library", "streams": [[read in base64, …], …], "names"} gives
// {"seen": [{"events": [[data, event, id, at], …], "threw"}, …]}; before it, for each read of `url` that the library
// wants next, {"more": true}: `fetch` joins what has come by the time it looks, so the next must not leave earlier.
// `names`: event types to subscribe to, for a library
// that wants to be told. Ends with its standard input.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const SECONDS = Number(process.argv[2]);
const FOLDERS = process.argv.slice(3).map((folder) => resolve(folder));

// Libraries complain on the console; standard output is for answers only.
const print = process.stdout.write.bind(process.stdout);
process.stdout.write = () => true;
for (const name of ["log", "info", "warn", "error", "debug"]) console[name] = () => {};

/** The folder of an installed package, or null. */
function packageFolder(name) {
  for (const folder of FOLDERS) {
    for (const place of [join(folder, "node_modules", name), join(folder, name)]) {
      if (existsSync(join(place, "package.json"))) return place;
    }
  }
  return null;
}

/** Import `name`, or a part of it, from where it is installed. */
function load(name, part = "") {
  const place = packageFolder(name);
  const require = createRequire(join(dirname(place), "here.js"));
  return import(pathToFileURL(require.resolve(part ? `${name}/${part}` : name)));
}

/** What one library makes of one stream: collects its events, and counts the reads that it has taken. */
class Reading {
  constructor(open, more, url, names, signal) {
    this.open = open;
    this.more = more;
    this.url = url;
    this.names = names;
    this.signal = signal;
    this.taken = 0;
    this.events = [];
    this.fetch = this.fetch.bind(this);
  }

  /** In the place of `fetch`: the same response, its reads counted as they are taken. */
  async fetch() {
    const response = await this.open(this.signal);
    const reader = response.body.getReader();
    const body = new ReadableStream(
      {
        pull: async (controller) => {
          this.more();
          const { done, value } = await reader.read();
          this.taken += 1;
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  event(data, event, id) {
    this.events.push([data, event || "message", id ?? null, Math.max(0, this.taken - 1)]);
  }

  value(value) {
    this.event(JSON.stringify(value) ?? "null");
  }
}

const QUESTION = [{ role: "user", content: "-" }]; // nobody answers it: the stream is there

/** Each library: its package, and how it reads. */
const LIBRARIES = {
  "eventsource-parser": {
    package: "eventsource-parser",
    async make() {
      const { EventSourceParserStream } = await load("eventsource-parser", "stream");
      return async (reading) => {
        const response = await reading.fetch();
        const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
        for await (const { data, event, id } of events) reading.event(data, event, id);
      };
    },
  },
  eventsource: {
    package: "eventsource",
    async make() {
      const { EventSource } = await load("eventsource");
      return (reading) =>
        new Promise((done) => {
          const source = new EventSource(reading.url, { fetch: reading.fetch });
          const close = () => {
            source.close(); // it would ask again, for ever
            done();
          };
          for (const name of new Set(["message", ...reading.names])) {
            source.addEventListener(name, (event) => {
              if (event.data !== undefined) reading.event(event.data, event.type, event.lastEventId);
            });
          }
          source.addEventListener("error", (event) => event.data === undefined && close());
          reading.signal.addEventListener("abort", close);
        });
    },
  },
  "eventsource-client": {
    package: "eventsource-client",
    async make() {
      const { createEventSource } = await load("eventsource-client");
      return (reading) =>
        new Promise((done) => {
          const source = createEventSource({
            url: reading.url,
            fetch: reading.fetch,
            onMessage: ({ data, event }) => reading.event(data, event, source?.lastEventId ?? null),
            onDisconnect: () => {
              source.close(); // it would ask again, for ever
              done();
            },
          });
          reading.signal.addEventListener("abort", () => (source.close(), done()));
        });
    },
  },
  "fetch-event-source": {
    package: "@microsoft/fetch-event-source",
    async make() {
      const { fetchEventSource } = await load("@microsoft/fetch-event-source");
      return async (reading) => {
        // Written for pages: what it needs of one, for as long as it reads.
        globalThis.window = { fetch, setTimeout, clearTimeout };
        globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
        try {
          await fetchEventSource(reading.url, {
            fetch: reading.fetch,
            signal: reading.signal,
            openWhenHidden: true,
            onmessage: ({ data, event, id }) => reading.event(data, event, id || null),
            onerror: (error) => {
              throw error; // its way to say: do not ask again
            },
          });
        } finally {
          delete globalThis.window;
          delete globalThis.document;
        }
      };
    },
  },
  "fetch-event-stream": {
    package: "fetch-event-stream",
    async make() {
      const { events } = await load("fetch-event-stream");
      return async (reading) => {
        for await (const { data, event, id } of events(await reading.fetch(), reading.signal)) {
          reading.event(data ?? "", event, id === undefined ? null : String(id));
        }
      };
    },
  },
  "openai-node": {
    package: "openai",
    async make() {
      const { default: OpenAI } = await load("openai");
      return async (reading) => {
        const client = new OpenAI({ apiKey: "-", baseURL: reading.url, fetch: reading.fetch, maxRetries: 0 });
        for await (const value of await client.get("/", { stream: true })) reading.value(value);
      };
    },
  },
  "openai-node-chat": {
    package: "openai",
    async make() {
      const { default: OpenAI } = await load("openai");
      return async (reading) => {
        const client = new OpenAI({ apiKey: "-", baseURL: reading.url, fetch: reading.fetch, maxRetries: 0 });
        const chunks = await client.chat.completions.create({ model: "-", messages: QUESTION, stream: true });
        for await (const { choices } of chunks) {
          if (choices.length) reading.value({ text: choices[0].delta.content });
        }
      };
    },
  },
  "openai-node-events": {
    package: "openai",
    async make() {
      const { _iterSSEMessages } = await load("openai", "core/streaming");
      return async (reading) => {
        for await (const { data, event } of _iterSSEMessages(await reading.fetch(), new AbortController())) {
          reading.event(data, event);
        }
      };
    },
  },
  "anthropic-node-chat": {
    package: "@anthropic-ai/sdk",
    async make() {
      const { default: Anthropic } = await load("@anthropic-ai/sdk");
      return async (reading) => {
        const client = new Anthropic({ apiKey: "-", baseURL: reading.url, fetch: reading.fetch, maxRetries: 0 });
        const asked = { model: "-", max_tokens: 1, messages: QUESTION, stream: true };
        for await (const { type, delta } of await client.messages.create(asked)) {
          if (type === "content_block_delta" && delta.type === "text_delta") reading.value({ text: delta.text });
        }
      };
    },
  },
  "anthropic-node-events": {
    package: "@anthropic-ai/sdk",
    async make() {
      const { _iterSSEMessages } = await load("@anthropic-ai/sdk", "core/streaming");
      return async (reading) => {
        for await (const { data, event } of _iterSSEMessages(await reading.fetch(), new AbortController())) {
          reading.event(data, event);
        }
      };
    },
  },
  "assistant-stream": {
    package: "assistant-stream",
    async make() {
      const { SSEEventDecoder } = await load("assistant-stream", "utils");
      return async (reading) => {
        const decoder = new SSEEventDecoder();
        const take = (events) => events.forEach(({ data, event, id }) => reading.event(data, event, id));
        const text = (await reading.fetch()).body.pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true }));
        for await (const piece of text) take(decoder.push(piece));
        const last = decoder.flush();
        if (last) take([last]);
      };
    },
  },
  "ag-ui": {
    package: "@ag-ui/client",
    async make() {
      const { parseSSEStream, runHttpRequest } = await load("@ag-ui/client");
      return (reading) =>
        new Promise((done, fail) => {
          parseSSEStream(runHttpRequest(() => reading.fetch())).subscribe({
            next: (value) => reading.value(value),
            error: fail,
            complete: done,
          });
        });
    },
  },
  ai: {
    package: "ai",
    async make() {
      const { jsonSchema, parseJsonEventStream } = await load("ai");
      return async (reading) => {
        const { body } = await reading.fetch();
        for await (const part of parseJsonEventStream({ stream: body, schema: jsonSchema({}) })) {
          if (!part.success) throw part.error;
          reading.value(part.value);
        }
      };
    },
  },
};

const readers = {};
const found = {};
const missing = {};
for (const [name, { package: from, make }] of Object.entries(LIBRARIES)) {
  const place = packageFolder(from);
  if (place === null) {
    missing[name] = "";
    continue;
  }
  try {
    readers[name] = await make();
    found[name] = JSON.parse(readFileSync(join(place, "package.json"), "utf-8")).version;
  } catch (error) {
    missing[name] = String(error?.message ?? error).split("\n")[0];
  }
}

/** Is told what a library throws where nobody can catch it: in a timer, or in an event of its own. */
let thrown = () => {};
process.on("uncaughtException", (error) => thrown(error));
process.on("unhandledRejection", () => {}); // of what a library has started and waits for no more

/** One stream, within SECONDS. open: gives the response; more: is told when the next read is wanted. */
async function read(library, open, more, url, names) {
  const ending = new AbortController();
  const reading = new Reading(open, more, url, names, ending.signal);
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not at its end after ${SECONDS} s`)), SECONDS * 1000);
    thrown = fail;
  });
  let threw = null;
  try {
    await Promise.race([readers[library](reading), late]);
  } catch (error) {
    threw = `${error?.name ?? "Error"}: ${error?.message ?? error}`;
  } finally {
    clearTimeout(timer);
    thrown = () => {};
    ending.abort();
  }
  return { events: reading.events, threw };
}

/** A response whose body gives these reads, each as one. */
const given = (reads) => async () =>
  new Response(
    new ReadableStream(
      {
        pull(controller) {
          const next = reads.shift();
          if (next === undefined) controller.close();
          else controller.enqueue(new Uint8Array(Buffer.from(next, "base64")));
        },
      },
      { highWaterMark: 0 },
    ),
    { headers: { "content-type": "text/event-stream" } },
  );

const write = (value) => print(`${JSON.stringify(value)}\n`);
write({ node: process.version, found, missing });
for await (const line of createInterface({ input: process.stdin })) {
  const { library, url, streams, names } = JSON.parse(line);
  const seen = [];
  if (url) seen.push(await read(library, (signal) => fetch(url, { signal }), () => write({ more: true }), url, names));
  for (const reads of streams ?? []) seen.push(await read(library, given(reads), () => {}, "http://127.0.0.1/", names));
  write({ seen });
}
process.exit(0);
