// To the clipboard, also where a page came over plain HTTP and browsers have no `navigator.clipboard`.

/** Copy text. beside: an element that was pressed for it. Returns whether it was copied. */
export async function copy(text: string, beside: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text, beside);
  }
}

/** A browser copies only where something is selected: what it is, is said when it asks. */
function copySelected(text: string, beside: HTMLElement): boolean {
  const box = document.createElement("textarea");
  box.className = "unseen";
  box.value = text;
  beside.after(box);
  box.select();
  try {
    return document.execCommand("copy");
  } finally {
    box.remove();
    beside.focus({ preventScroll: true });
  }
}
