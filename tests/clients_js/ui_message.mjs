// The AI SDK's chat without React in front of the server: plays the steps that come on stdin, prints what it shows.
import { readFileSync } from "node:fs";

import { AbstractChat, DefaultChatTransport, parseJsonEventStream, readUIMessageStream, uiMessageChunkSchema } from "ai";

class State {
  status = "ready";
  error = undefined;
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = (message) => (this.messages = this.messages.concat(message));
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => (this.messages = this.messages.toSpliced(index, 1, this.snapshot(message)));
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor({ messages = [], ...init }) {
    super({ ...init, state: new State(messages) });
  }
}

const { url, secret, id = "c1", messages, body, steps = [], wires } = JSON.parse(readFileSync(0, "utf8"));
const finished = [];
let chat;

function open(kept) {
  chat = new Chat({
    id,
    messages: kept,
    transport: new DefaultChatTransport({
      api: `${url}/api/ui-message`,
      headers: { Authorization: `Bearer ${secret}` },
      body,
    }),
    onFinish: ({ finishReason, isAbort, isError }) => finished.push({ finishReason, isAbort, isError }),
  });
}

const text = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
const shown = () => chat.messages.map(text).join("\n");

async function until(holds, what) {
  for (let waited = 0; !holds(); waited += 5) {
    if (waited > 10_000) throw new Error(`${what} did not come: ${chat.status}, ${shown()}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}

const acts = {
  send: (words) => chat.sendMessage({ text: words }),
  sendTwice: (words) => Promise.all([chat.sendMessage({ text: words }), chat.sendMessage({ text: words })]),
  edit: ([index, words]) => chat.sendMessage({ text: words, messageId: chat.messages[index].id }),
  begin: (words) => void chat.sendMessage({ text: words }),
  regenerate: (messageId) => chat.regenerate(messageId ? { messageId } : undefined),
  regenerateTwice: () => Promise.all([chat.regenerate(), chat.regenerate()]),
  wait: (words) => until(() => shown().includes(words), words),
  stop: () => chat.stop(),
  idle: () => until(() => !["submitted", "streaming"].includes(chat.status), "the end"),
  resume: () => chat.resumeStream(),
  beginResume: () => void chat.resumeStream(),
  reopen: (kept) => open(kept === "questions" ? chat.messages.filter(({ role }) => role === "user") : chat.messages),
  print: (line) => console.log(line),
};

/** Each of these streams as the client's own reader and reducer take it. */
async function readAll() {
  const read = [];
  for (const wire of wires) {
    let error = null;
    let message = null;
    const fail = (problem) => (error ??= String(problem.message ?? problem));
    const bytes = new Blob([Buffer.from(wire, "base64")]).stream();
    const stream = parseJsonEventStream({ stream: bytes, schema: uiMessageChunkSchema }).pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          if (chunk.success) controller.enqueue(chunk.value);
          else fail(chunk.error);
        },
      }),
    );
    try {
      for await (const state of readUIMessageStream({ stream, onError: fail })) message = state;
    } catch (problem) {
      fail(problem);
    }
    read.push({ error, message });
  }
  return read;
}

if (wires) {
  console.log(JSON.stringify(await readAll()));
} else {
  open(messages);
  for (const [act, argument] of steps) await acts[act](argument);
  const { status, error } = chat;
  console.log(JSON.stringify({ status, error: error?.message ?? null, messages: chat.messages, finished }));
}
