import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { useEffect } from "react";
import { createRoot } from "react-dom/client";

const api = "chat/api/ui-message";
const transport = new DefaultChatTransport({ api });

// The page keeps its chat's name and messages, for a reload. The server has its own history, and tells the model that.
const id = (localStorage.chat ??= crypto.randomUUID());
const kept = JSON.parse(localStorage.messages ?? "[]");

const HOW_IT_ENDED = { stopped: "stopped", abandoned: "left", truncated: "cut off", filtered: "held back" };

function Part({ part }) {
  if (part.type === "text") return part.text;
  if (part.type.startsWith("tool-")) return <i>[{part.type.slice(5)}] </i>;
  if (part.type !== "data-outcome") return null;
  const { outcome, message, marks = [] } = part.data;
  const notes = [HOW_IT_ENDED[outcome] ?? message, ...marks].filter(Boolean);
  return notes.length > 0 && <span className="note"> ({notes.join(", ")})</span>;
}

function Chat() {
  // `resume` goes on with an answer that was under way when the page was left; the server then takes a closed
  // connection for a lost one, so that stopping needs a request of its own.
  const { messages, sendMessage, regenerate, status, error, stop } = useChat({ id, messages: kept, transport, resume: true });
  useEffect(() => void (localStorage.messages = JSON.stringify(messages)), [messages]);
  const busy = status === "submitted" || status === "streaming";

  function ask(event) {
    event.preventDefault();
    const { question } = event.target.elements;
    if (!busy && question.value.trim()) sendMessage({ text: question.value });
    question.value = "";
  }

  function halt() {
    const last = messages.at(-1);
    const told = last.role === "assistant" ? { assistantMessage: last } : { messageId: last.id };
    const headers = { "Content-Type": "application/json" };
    const address = `${api}/${encodeURIComponent(id)}/stop`;
    fetch(address, { method: "POST", headers, body: JSON.stringify(told) }).catch(stop);
  }

  return (
    <>
      <div id="talk" aria-live="polite">
        {messages.map((message) => (
          <p key={message.id} className={message.role}>
            {message.parts.map((part, place) => (
              <Part key={place} part={part} />
            ))}
          </p>
        ))}
      </div>
      {error && <p role="alert" className="note">{error.message}</p>}
      <form onSubmit={ask}>
        <input id="question" aria-label="Your question" autoComplete="off" />
        {busy ? (
          <button id="halt" type="button" onClick={halt}>Stop</button>
        ) : (
          <button id="send">Ask</button>
        )}
        <button id="again" type="button" disabled={busy || messages.length === 0} onClick={() => regenerate()}>
          Again
        </button>
      </form>
    </>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
