// The least page there is with `useChat`, unguarded: each press of a button is a call. `window.settings` says the rest.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";

const { api, secret, id = "c1", resume = false, body, keep = false } = window.settings;
const headers = { Authorization: `Bearer ${secret}` };
const transport = new DefaultChatTransport({ api, headers, body });
const kept = JSON.parse((keep && sessionStorage.getItem("messages")) || "[]");

function Chat() {
  const { messages, sendMessage, status, stop, regenerate, error } = useChat({ id, resume, messages: kept, transport });
  useEffect(() => sessionStorage.setItem("messages", JSON.stringify(messages)), [messages]);
  const halt = () => fetch(`${api}/${id}/stop`, { method: "POST", headers });
  return (
    <>
      <ol>
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            <span className="text">
              {message.parts.map((part, place) => part.type === "text" && <span key={place}>{part.text}</span>)}
            </span>
            {message.parts.map((part, place) => part.type === "data-outcome" && <em key={place}>{part.data.outcome}</em>)}
          </li>
        ))}
      </ol>
      <p id="status">{status}</p>
      <p id="error">{error?.message}</p>
      <input id="question" defaultValue="Hello" />
      <button id="send" onClick={() => sendMessage({ text: document.getElementById("question").value })} />
      <button id="stop" onClick={stop} />
      <button id="halt" onClick={halt} />
      <button id="again" onClick={() => regenerate()} />
    </>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Chat />
  </StrictMode>,
);
