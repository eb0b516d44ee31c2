import { Chat } from "./chat";

export default function Page() {
  return (
    <main>
      <h1>Help</h1>
      <Chat />
    </main>
  );
}
