"use client";

import { useState } from "react";

/** The chat in a box of the page. The layout's script has defined the element; React sets its attributes. */
export function Chat() {
  const [ended, setEnded] = useState("");
  return (
    <>
      <motamot-chat
        server={process.env.NEXT_PUBLIC_CHAT}
        assistant="default"
        style={{ height: "32rem" }}
        ref={(chat) => {
          const heard = (event: CustomEvent<{ outcome: string }>) => setEnded(event.detail.outcome);
          chat?.addEventListener("motamot-ended", heard);
          return () => chat?.removeEventListener("motamot-ended", heard);
        }}
      />
      <p id="ended">{ended}</p>
    </>
  );
}
