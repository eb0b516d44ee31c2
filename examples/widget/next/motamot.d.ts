import type { DetailedHTMLProps, HTMLAttributes } from "react";

interface MotamotChat extends HTMLElement {
  stop(): void;
}

interface ChatAttributes extends HTMLAttributes<MotamotChat> {
  server?: string;
  assistant?: string;
  theme?: "light" | "dark";
  images?: string;
}

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "motamot-chat": DetailedHTMLProps<ChatAttributes, MotamotChat>;
    }
  }
}

declare global {
  interface HTMLElementEventMap {
    "motamot-asked": CustomEvent<{ assistant: string; exchange: string }>;
    "motamot-ended": CustomEvent<{ assistant: string; exchange: string; outcome: string }>;
  }
}
