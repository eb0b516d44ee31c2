import Script from "next/script";
import type { ReactNode } from "react";

const chat = process.env.NEXT_PUBLIC_CHAT; // https://chat.example/

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>
        {children}
        <Script src={`${chat}widget.js`} data-assistant="default" />
      </body>
    </html>
  );
}
