"""Words as they are searched for: folded, and cut to what their forms share, in French and in English. Pure.

An article is indexed by the stems of its own language and by the words as they stand; a question, which is too short to
tell its language, is asked in both. Measured in tests/knowledge/test_recall.py: questions that use a section's words in
other forms find it for 14 of 15, against 8 by the words as they stand; of 40 common questions 36 have their page among
three passages, against 33 where every text had the stems of both languages and no words of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Literal

from motamot.knowledge import bounds

__all__ = ["Language", "language", "query", "searchable"]

Language = Literal["french", "english"]


_WORD = re.compile(r"[^\W_]+")
_LONGEST = 40  # characters of a word: longer ones are keys and addresses, cut so that they cost no more
_PREFIX = 4  # characters that a word has in common with what it may begin

_FRENCH_WORDS = "le la les des une est dans pour que qui pas avec sur sont vous il ce et du au aux ne"
_ENGLISH_WORDS = "the of and to is in that it for with as are this be not or by an from which you"
_ONLY_FRENCH = frozenset(_FRENCH_WORDS.split())
_ONLY_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_LANGUAGE_WORDS = 5_000  # that are looked at

_IDLE_WORDS = """
    a about all am an and any are as at be been but by can could did do does for from get had has have he her here him
    his how i if in into is it its just like may me more my need no not of on one or our out she should so some than
    that the their them then there these they this to up us was we were what when where which who why will with would
    you your
    au aux avec c ce ces cet cette comme comment d dans de des du elle en es est et etre eu fait faire faut il ils j je
    l la le les leur leurs lui m ma mais me mes mon n ne nos notre nous on ou où par pas peut peux plus pour pourquoi qu
    quand que quel quelle quels quelles qui quoi s sa sans se ses si son sont sur t ta te tes ton toi tu un une vos
    votre vous y à ai as avons avez ont puis dois doit
"""
_IDLE = frozenset(_IDLE_WORDS.split())  # words of questions that say nothing of what is asked


def language(text: str) -> Language:
    """The language that `text` is more likely in: by the small words that are one's alone. English where neither is."""
    counted = Counter(found[0] for found in islice(_WORD.finditer(text.casefold()), _LANGUAGE_WORDS))
    french, english = (sum(counted[word] for word in small) for small in (_ONLY_FRENCH, _ONLY_ENGLISH))
    return "french" if french > english else "english"


def searchable(text: str, written: Language) -> str:
    """What stands for `text` in the index: of each word the stem, and the word itself as a term of its own."""
    return " ".join([f"{_stem(word, written)} {_exact(word)}" for word in _words(text)])


def query(text: str, *, prefixes: bool = False) -> str | None:
    """`text` as a query of FTS5 that finds any of its words, whatever else it holds; None where it has no word.

    prefixes: find words that begin as these do, where nothing else is found.
    """
    words = list(dict.fromkeys(_words(text[: bounds.QUERY_CHARACTERS])))
    words = [word for word in words if word not in _IDLE] or words
    terms: dict[str, None] = {}
    for word in words[: bounds.QUERY_WORDS]:
        stems = (_stem(word, "french"), _stem(word, "english"))
        # Quoted, a term is a string to FTS5, whatever it looks like: AND, NEAR(, *, ^ and the like are none here.
        if prefixes:
            terms |= {f'"{stem}" *': None for stem in stems if len(stem) >= _PREFIX}
        else:
            terms |= {f'"{term}"': None for term in (*stems, _exact(word))}
    return " OR ".join(terms) or None


def _words(text: str) -> Iterator[str]:
    """The words of `text` in small letters, accents kept: the stems of French need them."""
    composed = unicodedata.normalize("NFC", text).casefold().replace("œ", "oe").replace("æ", "ae")
    for found in _WORD.finditer(composed):
        yield found[0][:_LONGEST]


@lru_cache(maxsize=200_000)
def _stem(word: str, written: Language) -> str:
    return _folded(_stemmer(written).stemWord(word))


def _exact(word: str) -> str:
    return f"x{_folded(word)}"  # so that it is no stem


@cache
def _stemmer(written: Language) -> Any:
    import snowballstemmer  # here: it loads all its languages, which few commands need

    return snowballstemmer.stemmer(written)


def _folded(word: str) -> str:
    """Without accents: many visitors type none. `réserver`, `reserver` and `réservation` all come to `reserv`."""
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))
