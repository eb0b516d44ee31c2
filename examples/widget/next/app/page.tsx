import Link from "next/link";

export default function Page() {
  return (
    <main>
      <h1>A shop</h1>
      <p>
        We sell lamps. <Link href="/help">Help</Link>
      </p>
    </main>
  );
}
