// Which addresses a link may have. A model's text is a stranger's: what is not surely harmless is shown, not followed.

const HARMLESS = /^(?:https?:\/\/[^/?#]|mailto:[^/])/i;
// Browsers drop line ends and tabs, turn backslashes round, and show no direction marks.
const TRICKS = /[\s\\\p{Cc}\p{Cf}]/u;

/**
 * The address as a browser resolves it, or null where it may not be followed: only http, https and mailto, in full, and
 * no name or password before the host (`https://bank.example@elsewhere.example` leads elsewhere).
 */
export function harmless(address: string): string | null {
  if (!HARMLESS.test(address) || TRICKS.test(address)) return null;
  try {
    const url = new URL(address);
    return url.username === "" && url.password === "" ? url.href : null;
  } catch {
    return null;
  }
}
