// assistant-ui's runtime for AG-UI, as a page has it: does what its one argument says, prints what came of it as JSON.
import { JSDOM } from "jsdom";

const dom = new JSDOM("<!doctype html><div id=root></div>", { url: "http://localhost/" });
globalThis.window = dom.window;
globalThis.document = dom.window.document;
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { HttpAgent } = await import("@ag-ui/client");
const { useAgUiRuntime } = await import("@assistant-ui/react-ag-ui");

const told = JSON.parse(process.argv[2]);
const warnings = [];
const errors = [];
console.warn = console.error = (...said) => warnings.push(said.map(String).join(" "));

const agent = new HttpAgent({ url: told.url, headers: { Authorization: `Bearer ${told.secret}` }, threadId: "t1" });
let runtime;
function Page() {
  runtime = useAgUiRuntime({ agent, onError: (error) => errors.push(error.message) });
  return null;
}
createRoot(document.getElementById("root")).render(createElement(Page));

async function until(holds) {
  for (let tries = 0; !holds(); tries++) {
    if (tries > 1500) throw new Error(`never: ${holds}\n${JSON.stringify(messages(), null, 1)}\n${warnings}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}
const messages = () => runtime?.thread.getState().messages ?? [];
const textOf = ({ content }) =>
  content
    .filter(({ type }) => type === "text")
    .map(({ text }) => text)
    .join("");
const answered = (from) => messages().slice(from).filter(({ role }) => role === "assistant");

await until(() => runtime);
const answers = [];
for (const question of told.questions) {
  const before = messages().length;
  runtime.thread.append({ role: "user", content: [{ type: "text", text: question }] });
  await until(() => answered(before).length);
  if (told.cancelAt) {
    await until(() => textOf(messages().at(-1)).length >= told.cancelAt);
    runtime.thread.cancelRun();
  }
  await until(() => !runtime.thread.getState().isRunning);
  const parts = answered(before).flatMap(({ content }) => content);
  answers.push({
    text: answered(before).map(textOf).join(""),
    status: messages().at(-1).status,
    calls: parts.filter(({ type }) => type === "tool-call").map(({ toolName, result }) => ({ toolName, result })),
    ours: parts.filter(({ type }) => type === "data").map(({ name }) => name),
  });
}
process.stdout.write(JSON.stringify({ answers, errors, warnings }));
process.exit(0);
