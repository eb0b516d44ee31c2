// AG-UI's own client: does what the JSON file of its one argument says, prints what came of it as JSON.
import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";

const told = JSON.parse(readFileSync(process.argv[2], "utf8"));
const warnings = [];
console.warn = (...said) => warnings.push(said.map(String).join(" "));
console.error = console.warn;

function agentFor({ url, secret, threadId, messages }) {
  const headers = secret ? { Authorization: `Bearer ${secret}` } : {};
  return new HttpAgent({ url, headers, threadId, initialMessages: messages ?? [] });
}

async function run(agent, parameters = {}, watch = () => {}) {
  const events = [];
  const errors = [];
  const subscriber = {
    onEvent({ event }) {
      events.push(event);
      watch(event);
    },
    onRunErrorEvent({ event }) {
      errors.push({ code: event.code, message: event.message });
    },
  };
  let rejected = null;
  try {
    await agent.runAgent(parameters, subscriber);
  } catch (error) {
    rejected = error.message;
  }
  return { rejected, events, errors, messages: agent.messages };
}

const acts = {
  run: () => run(agentFor(told), told.parameters),

  // A page's tool: run, do what was asked for, run again, as often as it takes.
  async tools() {
    const agent = agentFor(told);
    const runs = [];
    for (;;) {
      runs.push(await run(agent, told.parameters));
      const answered = new Set(agent.messages.filter(({ role }) => role === "tool").map((message) => message.toolCallId));
      const open = agent.messages
        .flatMap((message) => message.toolCalls ?? [])
        .filter(({ id }) => !answered.has(id));
      if (!open.length || runs.length > 5) return { runs };
      for (const call of open) {
        const content = JSON.stringify({ got: JSON.parse(call.function.arguments || "{}") });
        agent.messages.push({ id: `result-of-${call.id}`, role: "tool", toolCallId: call.id, content });
      }
    }
  },

  async abort() {
    const agent = agentFor(told);
    let pieces = 0;
    return run(agent, told.parameters, ({ type }) => {
      if (type === "TEXT_MESSAGE_CONTENT" && ++pieces === told.after) agent.abortRun();
    });
  },

  // Streams that were written elsewhere, cut as told, through all of the client.
  async replay() {
    const found = [];
    for (const { pieces } of told.streams) {
      globalThis.fetch = async () => {
        const body = new ReadableStream({
          start(controller) {
            for (const piece of pieces) controller.enqueue(Buffer.from(piece, "base64"));
            controller.close();
          },
        });
        return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
      };
      const before = warnings.length;
      const { rejected, errors, messages } = await run(agentFor({ url: "http://stream.invalid", threadId: "t" }));
      found.push({ rejected, errors, messages, warnings: warnings.slice(before) });
    }
    return { found };
  },
};

const done = await acts[told.act]();
process.stdout.write(JSON.stringify({ ...done, warnings }));
