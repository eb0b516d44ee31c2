import { HttpAgent } from "@ag-ui/client";

const agent = new HttpAgent({ url: new URL("chat/api/ag-ui", document.baseURI).href });
const stops = document.getElementById("stop");
const send = document.getElementById("send");
const halt = document.getElementById("halt");

const tools = [
  {
    name: "choose_stop",
    description: "Choose the passenger's stop in the page's list.",
    parameters: {
      type: "object",
      properties: { stop: { type: "string", enum: [...stops.options].map((option) => option.value) } },
      required: ["stop"],
    },
  },
];

function chooseStop({ stop }) {
  const found = [...stops.options].find((option) => option.value === stop);
  if (!found) return "There is no such stop.";
  stops.value = stop;
  return `${stop} is chosen.`;
}

function line(kind, text = "") {
  const made = document.createElement("p");
  made.className = kind;
  made.textContent = text; // never HTML: it is a stranger's text, and so is a model's
  document.getElementById("talk").append(made);
  return made;
}

// One run: its text as it comes, and then the calls of our tools that it has left to us.
async function run() {
  let answer = null;
  let failed = false;
  const context = [{ description: "The stop that is chosen in the page", value: stops.value }];
  const { newMessages } = await agent.runAgent(
    { tools, context },
    {
      onTextMessageStartEvent() {
        answer = line("answer");
      },
      onTextMessageContentEvent({ event }) {
        answer.append(event.delta);
      },
      onRunErrorEvent({ event }) {
        failed = true;
        line("note", event.code === "abort" ? "(stopped)" : event.message);
      },
      onCustomEvent({ event }) {
        // AG-UI has no words for an answer that was cut, or is a recorded sample: motamot says it beside.
        if (event.name !== "motamot.ended" || event.value.outcome === "failed") return;
        const notes = [event.value.outcome, ...(event.value.marks ?? [])].filter((note) => note !== "complete");
        if (notes.length) line("note", `(${notes.join(", ")})`);
      },
    },
  );
  const calls = failed ? [] : newMessages.flatMap((message) => message.toolCalls ?? []);
  return calls.filter((call) => call.function.name === "choose_stop");
}

async function ask(question) {
  line("asked", question);
  agent.messages.push({ id: crypto.randomUUID(), role: "user", content: question });
  for (let runs = 0; runs < 5; runs++) {
    const calls = await run();
    if (!calls.length) return;
    for (const call of calls) {
      const content = chooseStop(JSON.parse(call.function.arguments || "{}"));
      agent.messages.push({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content });
    }
  }
}

document.getElementById("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = document.getElementById("question");
  const question = field.value;
  field.value = "";
  send.disabled = true; // one question at a time
  halt.disabled = false;
  try {
    await ask(question);
  } catch (error) {
    line("note", error.message); // refused before it began: too long, too often, …
  } finally {
    send.disabled = false;
    halt.disabled = true;
  }
});
halt.addEventListener("click", () => agent.abortRun());
