// assistant-ui as its documentation sets it up: its runtime for the AI SDK, its transport, its own parts.
import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  BranchPickerPrimitive,
  ComposerPrimitive,
  ErrorPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
} from "@assistant-ui/react";
import { AssistantChatTransport, useChatRuntime } from "@assistant-ui/react-ai-sdk";
import { createRoot } from "react-dom/client";

const { api, secret } = window.settings;

const Text = ({ text }) => <span>{text}</span>;
const Tool = ({ toolName, status }) => <b>{`${toolName} ${status.type}`}</b>;

const UserMessage = () => (
  <MessagePrimitive.Root className="user">
    <span className="text">
      <MessagePrimitive.Parts components={{ Text }} />
    </span>
    <ActionBarPrimitive.Edit className="edit" />
  </MessagePrimitive.Root>
);

const EditComposer = () => (
  <ComposerPrimitive.Root>
    <ComposerPrimitive.Input id="edited" />
    <ComposerPrimitive.Send id="resend" />
  </ComposerPrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root className="assistant">
    <span className="text">
      <MessagePrimitive.Parts components={{ Text, tools: { Override: Tool } }} />
    </span>
    <MessagePrimitive.Error>
      <ErrorPrimitive.Root>
        <ErrorPrimitive.Message className="error" />
      </ErrorPrimitive.Root>
    </MessagePrimitive.Error>
    <ActionBarPrimitive.Reload className="again" />
    <BranchPickerPrimitive.Root hideWhenSingleBranch>
      <BranchPickerPrimitive.Previous className="previous" />
    </BranchPickerPrimitive.Root>
  </MessagePrimitive.Root>
);

function Chat() {
  const headers = { Authorization: `Bearer ${secret}` };
  const runtime = useChatRuntime({ transport: new AssistantChatTransport({ api, headers }) });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage, EditComposer, AssistantMessage }} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input id="question" />
          <ComposerPrimitive.Send id="send" />
          <ComposerPrimitive.Cancel id="stop" />
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
