// The view of a conversation that grows.

/** CSS pixels from the end that still count as the end: zoom makes fractions. */
const NEAR = 4;

/**
 * Keeps the end of the conversation in view for as long as the reader is there; once they have scrolled up, nothing
 * moves what they read, and `button` leads back.
 */
export class Scroller {
  readonly #area: HTMLElement;
  readonly #button: HTMLElement;
  #following = true;
  #last = 0;

  constructor(area: HTMLElement, content: HTMLElement, button: HTMLElement) {
    this.#area = area;
    this.#button = button;
    area.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    button.addEventListener("click", () => {
      this.toEnd();
      area.focus({ preventScroll: true }); // the button goes, the focus may not go with it
    });
    const grown = new ResizeObserver(() => this.#grown());
    grown.observe(area);
    grown.observe(content);
  }

  /** Go to the end, and stay there. */
  toEnd(): void {
    this.#following = true;
    this.#grown();
  }

  /** The content or the view has another size; emptied, it is at its end without having been scrolled. */
  #grown(): void {
    if (this.#following) this.#area.scrollTop = this.#area.scrollHeight;
    this.#following = this.#following || this.#atEnd();
    this.#button.hidden = this.#following;
  }

  #scrolled(): void {
    const { scrollTop } = this.#area;
    if (this.#atEnd()) this.#following = true;
    else if (scrollTop < this.#last) this.#following = false;
    this.#last = scrollTop;
    this.#button.hidden = this.#following;
  }

  #atEnd(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.#area;
    return scrollHeight - clientHeight - scrollTop <= NEAR;
  }
}
