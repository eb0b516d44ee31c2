// What is seen of a window: an on-screen keyboard lies over the page, which keeps its size.

/**
 * Let a box that fills the window fill what is seen of it.
 *
 * fills: whether it fills the window just now. gone: when to let it be.
 */
export function fillSeen(box: HTMLElement, fills: () => boolean, gone: AbortSignal): void {
  const seen = visualViewport;
  const fit = () => {
    // Somebody who has enlarged the page with two fingers sees a part of the box: it stays as it is.
    const own = seen !== null && fills() && seen.height < innerHeight - 1 && Math.abs(seen.scale - 1) < 0.01;
    box.style.height = own ? `${seen.height}px` : "";
    box.style.top = own ? `${seen.offsetTop}px` : "";
    box.style.bottom = own ? "auto" : "";
  };
  for (const kind of ["resize", "scroll"]) seen?.addEventListener(kind, fit, { signal: gone });
  fit();
}
