// What the parser asks of whoever shows the answer.

export type Kind =
  | "paragraph"
  | "heading"
  | "quote"
  | "list"
  | "item"
  | "task"
  | "fence"
  | "rule"
  | "table"
  | "head"
  | "row"
  | "cell"
  | "emphasis"
  | "strong"
  | "strike"
  | "code"
  | "link";

/**
 * A tree that mostly grows at its end. `N` is a place in it: whatever the renderer likes to give for one.
 *
 * What looked like the beginning of something and was not is taken back by `unwrap` or `remove`; the parser bounds
 * (limits.ts) how much lies in there, so that no call costs more than the longest emphasis or piece of code does.
 */
export interface Renderer<N> {
  /**
   * Append to a place.
   *
   * detail: the level ("1" to "6") of a heading, the number that a list starts with ("" for bullets), "x" or "" for a
   * task, the language of a fence, the alignment of a cell ("left", "center", "right" or "").
   */
  open(parent: N, kind: Kind, detail: string): N;
  /** Append text; never an empty one, and never half of a surrogate pair that is whole in the source. */
  text(place: N, text: string): void;
  /** Put text before all that a place holds. */
  lead(place: N, text: string): void;
  /** Take the place away and leave what it holds, with this text (or "") before it. */
  unwrap(place: N, text: string): void;
  /** Take the place away with all it holds. */
  remove(place: N): void;
  /** The same content in a place of another kind. */
  turn(place: N, kind: Kind, detail: string): N;
  /** The place, in a new one that stands where it stood. */
  wrap(place: N, kind: Kind): N;
  /** A `link` has got its address; as an image, if it was written as one. */
  aim(place: N, address: string, image: boolean): void;
  /** Items of this list have blank lines between or within them. */
  loosen(list: N): void;
}
