// Guitar Alchemist's readers once more, in JavaScript of our own: what the ports in Python are compared with, and what
// the pages of tests/peers/test_page_in_a_browser.py read with. Each takes reads (an iterable of Uint8Array) and a
// place to show things; it gives the answer, or throws.

async function* texts(reads) {
  const decoder = new TextDecoder();
  for await (const read of reads) yield decoder.decode(read, { stream: true });
}

function errorOf(data) {
  if (!data.startsWith("{")) return null;
  let value;
  try {
    value = JSON.parse(data);
  } catch {
    return null;
  }
  const only = Object.keys(value).length === 1 && typeof value.error === "string";
  return only ? value.error : null;
}

// Looks at of a trace what drawing it looks at.
function draw(trace) {
  if (!trace?.steps?.length) return;
  for (const step of trace.steps) step.status;
}

export async function page(reads, show = () => {}, { errorsThrow = false } = {}) {
  let waiting = "", shown = "", routing = null;
  for await (const text of texts(reads)) {
    waiting += text;
    for (let end; (end = waiting.indexOf("\n\n")) !== -1; ) {
      const lines = waiting.slice(0, end).split("\n").filter((line) => line.startsWith("data: "));
      waiting = waiting.slice(end + 2);
      if (!lines.length) continue;
      const data = lines.map((line) => line.substring(6)).join("\n");
      if (data === "[DONE]") {
        draw(routing?.trace);
        return shown;
      }
      if (errorsThrow) {
        const message = errorOf(data);
        if (message !== null) throw new Error(message);
      }
      if (!routing && data[0] === "{" && data.includes('"type"')) {
        try {
          const value = JSON.parse(data);
          if (value.type === "routing") {
            routing = value;
            draw(value.trace);
            continue;
          }
        } catch {
          // it is text
        }
      }
      shown += data;
      show(shown);
    }
  }
  draw(routing?.trace);
  return shown;
}

export const pageMended = (reads, show) => page(reads, show, { errorsThrow: true });

const firstLine = (event) => {
  const line = event.split("\n").find((each) => each.startsWith("data:"));
  return line === undefined ? "" : line.substring(5).trim();
};

const allLines = (event) =>
  event
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => (line[5] === " " ? line.substring(6) : line.substring(5)))
    .join("\n");

function checkJson(payload) {
  const value = JSON.parse(payload);
  if (value.error) throw new Error(value.error);
}

export async function chatService(reads, show = () => {}, payloadOf = firstLine) {
  let waiting = "", shown = "", done = false;
  for await (const text of texts(reads)) {
    const events = (waiting + text).split("\n\n");
    waiting = events.pop();
    for (const event of events) {
      const payload = payloadOf(event);
      if (!payload) continue;
      if (payload === "[DONE]") done = true;
      else if (payload[0] === "{") checkJson(payload);
      else show((shown += payload));
    }
    if (done) break;
  }
  if (waiting.trim()) show((shown += waiting.trim()));
  return shown;
}

export const chatServiceMended = (reads, show) => chatService(reads, show, allLines);

export async function chatApi(reads, show = () => {}) {
  let waiting = "", shown = "";
  for await (const text of texts(reads)) {
    const lines = (waiting + text).split("\n");
    waiting = lines.pop();
    for (const line of lines) {
      const data = line.startsWith("data: ") ? line.substring(6) : "";
      if (data === "" || data === "[DONE]") continue;
      if (data[0] === "{") checkJson(data);
      else show((shown += data));
    }
  }
  return shown;
}

function* frames(text) {
  for (const frame of text.split("\n\n")) {
    const payload = firstLine(frame);
    if (!payload) continue;
    let value;
    try {
      value = JSON.parse(payload);
    } catch {
      continue;
    }
    yield value;
  }
}

export async function streamAgUiChat(reads, show = () => {}) {
  let waiting = "", shown = "";
  for await (const text of texts(reads)) {
    waiting += text;
    const end = waiting.lastIndexOf("\n\n");
    if (end === -1) continue;
    const ready = waiting.slice(0, end + 2);
    waiting = waiting.slice(end + 2);
    for (const event of frames(ready)) {
      if (event.type === "TEXT_MESSAGE_CONTENT") show((shown += event.delta));
      if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") return shown;
    }
  }
  return shown;
}

export const READERS = {
  page,
  "page-mended": pageMended,
  "chat-service": chatService,
  "chat-service-mended": chatServiceMended,
  "chat-api": chatApi,
  "stream-ag-ui-chat": streamAgUiChat,
};
