// Character references that models write: those of HTML 4, and by number. HTML 5 has 2,000 more, which stay text.

const LATIN_1 = // U+00A0 to U+00FF, in order
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute " +
  "micro para middot cedil sup1 " +
  "ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil " +
  "Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave " +
  "Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml " +
  "igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute " +
  "thorn yuml";
const GREEK = // U+0391 and U+03B1 on, in order; no capital stands where the final sigma does
  "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon " +
  "phi chi psi omega";
const OTHERS =
  "amp& lt< gt> quot\" apos' OEligŒ oeligœ ScaronŠ scaronš YumlŸ fnofƒ circˆ tilde˜ thetasymϑ upsihϒ pivϖ ensp\u2002 " +
  "emsp\u2003 thinsp\u2009 zwnj\u200c zwj\u200d lrm\u200e rlm\u200f ndash– mdash— lsquo‘ rsquo’ sbquo‚ ldquo“ rdquo” " +
  "bdquo„ dagger† Dagger‡ bull• hellip… permil‰ prime′ Prime″ lsaquo‹ rsaquo› oline‾ frasl⁄ euro€ imageℑ weierp℘ " +
  "realℜ trade™ alefsymℵ larr← uarr↑ rarr→ darr↓ harr↔ crarr↵ lArr⇐ uArr⇑ rArr⇒ dArr⇓ hArr⇔ forall∀ part∂ exist∃ " +
  "empty∅ nabla∇ isin∈ notin∉ ni∋ prod∏ sum∑ minus− lowast∗ radic√ prop∝ infin∞ ang∠ and∧ or∨ cap∩ cup∪ int∫ there4∴ " +
  "sim∼ cong≅ asymp≈ ne≠ equiv≡ le≤ ge≥ sub⊂ sup⊃ nsub⊄ sube⊆ supe⊇ oplus⊕ otimes⊗ perp⊥ sdot⋅ lceil⌈ rceil⌉ " +
  "lfloor⌊ rfloor⌋ lang⟨ rang⟩ loz◊ spades♠ clubs♣ hearts♥ diams♦";

const NAMED = new Map<string, string>();
LATIN_1.split(" ").forEach((name, index) => NAMED.set(name, String.fromCharCode(0xa0 + index)));
GREEK.split(" ").forEach((name, index) => {
  NAMED.set(name, String.fromCharCode(0x3b1 + index));
  const capital = name.replace(/^./, (first) => first.toUpperCase());
  if (name !== "sigmaf") NAMED.set(capital, String.fromCharCode(0x391 + index));
});
for (const other of OTHERS.split(/ /)) NAMED.set(other.slice(0, -1), other.slice(-1));

/** A reference, sticky. */
export const REFERENCE = /&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z][a-zA-Z\d]{1,8});/y;

/** The beginning of a reference, as the end of what has come; sticky. */
export const REFERENCE_BEGUN = /&(?:#?|#\d{1,7}|#[xX][\da-fA-F]{0,6}|[a-zA-Z][a-zA-Z\d]{0,8})$/y;

/** What a whole reference stands for; itself, if its name is unknown. Source: CommonMark 0.31.2, §2.5. */
export function dereference(reference: string): string {
  if (reference[1] !== "#") return NAMED.get(reference.slice(1, -1)) ?? reference;
  const digits = reference.slice(2, -1);
  const code = /^x/i.test(digits) ? parseInt(digits.slice(1), 16) : parseInt(digits, 10);
  const scalar = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return scalar ? String.fromCodePoint(code) : "\ufffd";
}
