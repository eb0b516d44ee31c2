// OpenAI's client for Node in front of the server: does what its one argument says, prints what it got as JSON.
import OpenAI from "openai";

const { url, key, act, question } = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
const messages = [{ role: "user", content: question }];
const tools = [
  {
    type: "function",
    function: {
      name: "get_time",
      description: "The time in a zone.",
      parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
    },
  },
];

const acts = {
  async whole() {
    const answer = await client.chat.completions.create({ model: "default", messages });
    return { text: answer.choices[0].message.content, finish: answer.choices[0].finish_reason, usage: answer.usage };
  },

  async stream() {
    const stream = await client.chat.completions.create({
      model: "default",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const pieces = [];
    let finish = null;
    let usage = null;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta?.content) pieces.push(chunk.choices[0].delta.content);
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    return { pieces, finish, usage };
  },

  async tools() {
    const said = [];
    const runner = client.chat.completions
      .stream({ model: "default", messages, tools })
      .on("content", (delta) => said.push(delta));
    const { choices } = await runner.finalChatCompletion();
    const call = choices[0].message.tool_calls[0];
    const results = [{ role: "tool", tool_call_id: call.id, content: "12:00" }];
    const second = await client.chat.completions.create({
      model: "default",
      messages: [...messages, choices[0].message, ...results],
      tools,
    });
    return { finish: choices[0].finish_reason, call, said, text: second.choices[0].message.content };
  },

  async abort() {
    const stream = await client.chat.completions.create({ model: "default", messages, stream: true });
    let pieces = 0;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta?.content && ++pieces === 2) break; // leaving the loop aborts the request
    }
    return { aborted: stream.controller.signal.aborted };
  },

  async models() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    return { names, one: (await client.models.retrieve("default")).id };
  },
};

try {
  console.log(JSON.stringify(await acts[act]()));
} catch (error) {
  const { status, code, type, message } = error;
  console.log(JSON.stringify({ error: error.constructor.name, status, code, type, message }));
}
