// What the page keeps in the browser. Where the browser keeps nothing (blocked, full), the page works until a reload.

/**
 * A value under a name, in `localStorage` or `sessionStorage`; names are this page's own, not its origin's.
 *
 * fits: whether a value is one of this page: what another page of this origin, or another version of this one, has
 * left there must not keep it from working, at every visit from then on.
 */
export class Remembered {
  #name;
  #where;
  #fits;
  #value = null; // in case the browser does not keep it

  constructor(where, name, fits) {
    this.#where = where;
    this.#fits = fits;
    this.#name = `motamot ${new URL(".", document.baseURI).pathname} ${name}`;
  }

  /** The value as JSON can hold it, null for none; other pages may have changed it. */
  get value() {
    try {
      const kept = JSON.parse(globalThis[this.#where].getItem(this.#name));
      return kept !== null && this.#fits(kept) ? kept : this.#value;
    } catch {
      return this.#value; // nothing is kept, or not what we wrote
    }
  }

  set value(value) {
    this.#value = null;
    try {
      if (value === null) globalThis[this.#where].removeItem(this.#name);
      else globalThis[this.#where].setItem(this.#name, JSON.stringify(value));
    } catch {
      this.#value = value; // in this page only
    }
  }
}
