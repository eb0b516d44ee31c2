"""Tool calls put together from fragments, also those of servers that do not number or name them by the book.

By the book (OpenAI, chat completion chunks) a fragment carries the `index` of its call; id and name come with the
first, and the arguments are joined. In the field the index is missing, reused or starts at 1, ids and names are
repeated or late. Each rule below names the case or server that needs it; what is put right is reported.
"""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass
from typing import Any

from motamot.model.arguments import Arguments, canonical
from motamot.model.turn import ToolCall
from motamot.model.words import Note, clean, json_text

__all__ = ["ToolFragments"]

_ID_LETTERS = string.ascii_letters + string.digits
_ID_LENGTH = 9  # Mistral takes nine letters and digits and nothing else; everybody else takes that too
_NAMELESS = "unnamed"  # goes back to the model with the problem; servers refuse an empty name
_INDEX_MAX = 10_000


@dataclass(frozen=True, slots=True)
class _Fragment:
    """One entry of a delta's `tool_calls`, its values checked. "" and None: not given."""

    id: str
    index: int | None
    name: str
    arguments: str

    @property
    def opens(self) -> bool:
        """Whether its arguments begin a JSON value of their own."""
        return self.arguments.lstrip().startswith(("{", "["))


class _Call:
    """A call under way."""

    __slots__ = ("arguments", "id", "index", "made_up", "name", "problem", "repeats")

    def __init__(self, index: int | None) -> None:
        self.id = ""
        self.made_up = "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
        self.index = index
        self.name = ""
        self.problem: str | None = None
        self.repeats: _Call | None = None  # an earlier call that this one may be again
        self.arguments = Arguments()


class ToolFragments:
    """The calls of one turn, in order of appearance.

    note:       is told each deviation as it is met.
    cumulative: each fragment's arguments repeat those before (a dialect; never guessed).
    by_the_book: the dialect numbers its calls and gives them ids; Ollama does neither.
    depth:      levels to which arguments may be nested.
    """

    def __init__(self, note: Note, *, cumulative: bool = False, by_the_book: bool = True, depth: int = 64) -> None:
        self._note = note
        self._cumulative = cumulative
        self._by_the_book = by_the_book
        self._depth = depth
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}
        self._touched: list[_Call] = []  # by earlier entries of the same delta

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, entries: object) -> int:
        """Take the `tool_calls` of one delta. Gives the bytes kept of it."""
        self._touched = []
        size = 0
        for entry in entries if isinstance(entries, list) else [entries]:
            fragment = self._read(entry)
            if fragment is not None:
                call = self._call_of(fragment)
                if call is not None:
                    size += len(fragment.arguments.encode("utf-8", "surrogatepass")) + len(fragment.name)
                    size += 0 if fragment.id in self._by_id else len(fragment.id)
                    self._put(call, fragment)
        return size

    def calls(self, note: Note) -> tuple[ToolCall, ...]:
        """The calls as far as they came, with the problem of each that may not run.

        note: is told what only the whole arguments show (broken, cut off, sent twice).
        """
        made: list[ToolCall] = []
        ids: set[str] = set()
        sources: dict[int, ToolCall] = {}
        for call in self._calls:
            if not call.name and not call.arguments.begun:
                continue  # an id alone, as some servers send behind the last call: nothing was asked
            built = self._build(call, note, ids)
            twin = sources.get(id(call.repeats)) if call.repeats is not None else None
            if twin is not None and twin.name == built.name and canonical(twin.arguments) == canonical(built.arguments):
                note("tool-args-duplicated", f"the call of {built.name[:40]!r} was sent twice")
                continue
            ids.add(built.id)
            sources[id(call)] = built
            made.append(built)
        return tuple(made)

    # Reading one fragment.

    def _read(self, entry: Any) -> _Fragment | None:
        if not isinstance(entry, dict):
            if entry is not None:
                self._note("tool-call-not-object", "an entry of tool_calls is no object")
            return None
        function = entry.get("function")
        if not isinstance(function, dict):
            function = entry
        name = function.get("name")
        call_id = entry.get("id")
        return _Fragment(
            id=clean(call_id) if isinstance(call_id, str) else str(call_id) if type(call_id) is int else "",
            index=self._index(entry.get("index", function.get("index"))),  # Ollama has it inside
            name=clean(name) if isinstance(name, str) else "",
            arguments=self._arguments(function.get("arguments")),
        )

    def _index(self, value: object) -> int | None:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(_INDEX_MAX)):
            value = int(value)
        if type(value) is int and 0 <= value <= _INDEX_MAX:
            return value
        if self._by_the_book:  # tool-index-missing: Gemini, Mistral, versions of Ollama
            self._note("tool-index-missing", "a fragment of a tool call has no index")
        return None

    def _arguments(self, value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if self._by_the_book:  # tool-arguments-object
            self._note("tool-args-not-string", "the arguments of a tool call are no string")
        return json_text(value) or "nested too deep"

    # Which call a fragment belongs to.

    def _call_of(self, fragment: _Fragment) -> _Call | None:
        """The call that `fragment` goes on with, or a new one; None where it cannot be told."""
        at = self._by_index.get(fragment.index) if fragment.index is not None else None
        known = self._by_id.get(fragment.id) if fragment.id else None
        if at is not None and known is not None and at.id == fragment.id:
            known = at  # two calls under one id, told apart by their index
        if known is not None:
            if self._another_under_its_id(known, fragment):
                self._note("tool-id-repeated", "two calls have the same id")
                return self._new(fragment, repeats=known)
            return known
        last = at if fragment.index is not None else self._calls[-1] if self._calls else None
        if fragment.id and fragment.name:
            return self._with_new_id_and_name(fragment, last)
        if fragment.id:
            return self._with_new_id(fragment, last)
        if fragment.name:
            return self._with_name(fragment, last)
        return at if at is not None else self._nameless(fragment)

    def _another_under_its_id(self, known: _Call, fragment: _Fragment) -> bool:
        """Whether an id that is known starts another call: some servers call every call `call_0`."""
        if not fragment.name or not known.name:
            return False
        elsewhere = fragment.index is not None and known.index is not None and fragment.index != known.index
        if fragment.name != known.name:
            return elsewhere or known.arguments.complete
        return (
            known.arguments.complete
            and fragment.opens
            and (elsewhere or not known.arguments.raw.startswith(fragment.arguments.strip()))
        )

    def _with_new_id_and_name(self, fragment: _Fragment, last: _Call | None) -> _Call:
        if last is not None and not last.id and not last.arguments.complete and last.name in {"", fragment.name}:
            return last  # the call's arguments came before its id
        return self._new(fragment)  # tool-index-always-zero: whatever the open call's arguments are

    def _with_new_id(self, fragment: _Fragment, last: _Call | None) -> _Call:
        """A new id without a name: the name comes later, or the server makes up an id for each fragment (vLLM)."""
        if last is None or (last.arguments.complete and last.id):
            return self._new(fragment)
        if last.id:
            if not last.arguments.begun and not fragment.arguments and fragment.index is None:
                return self._new(fragment)
            self._note("tool-id-repeated", "the fragments of one call have different ids")
        return last

    def _with_name(self, fragment: _Fragment, last: _Call | None) -> _Call:
        """A name without an id."""
        if last is None or not self._by_the_book:  # Ollama sends each call whole
            return self._new(fragment)
        if not last.name:
            return last  # id first, name later
        if last in self._touched and (last.arguments.complete or fragment.name != last.name):
            return self._new(fragment)  # two entries of one delta, neither with an id
        if fragment.name == last.name:
            another = (
                last.arguments.complete and fragment.opens and last.arguments.raw.strip() != fragment.arguments.strip()
            )
            return self._new(fragment, repeats=last) if another else last
        if last.arguments.complete or fragment.index is None:
            return self._new(fragment)
        return last  # the rest of the name

    def _nameless(self, fragment: _Fragment) -> _Call | None:
        """Neither id nor name, and no call at its index: it goes on with the unfinished call, and opens none."""
        unfinished = [call for call in self._calls if not call.arguments.complete]
        if len(unfinished) == 1:
            return unfinished[0]
        if not fragment.arguments.strip():
            return None
        if unfinished:
            self._note("tool-fragment-ambiguous", "a fragment could belong to several calls")
            for call in unfinished:
                call.problem = "the arguments came in fragments that could belong to several calls"
            return None
        if len(self._calls) == 1:
            return self._calls[0]  # sent twice, or broken: the whole arguments will tell
        self._note("tool-fragment-ambiguous", "a fragment came that goes on with no call")
        return None

    def _new(self, fragment: _Fragment, *, repeats: _Call | None = None) -> _Call:
        call = _Call(fragment.index)
        call.repeats = repeats
        self._calls.append(call)
        if fragment.index is not None:
            if fragment.index in self._by_index:
                self._note("tool-index-reused", f"index {fragment.index} was taken by another call")
            self._by_index[fragment.index] = call
        return call

    def _put(self, call: _Call, fragment: _Fragment) -> None:
        """Add what `fragment` says to its call."""
        self._touched.append(call)
        if fragment.id:
            call.id = call.id or fragment.id
            self._by_id[fragment.id] = call
        if fragment.name:
            self._put_name(call, fragment.name)
        if not fragment.arguments:
            return
        if self._cumulative and fragment.arguments.startswith(call.arguments.raw):
            call.arguments = Arguments()
        call.arguments.add(fragment.arguments)

    def _put_name(self, call: _Call, name: str) -> None:
        if name == call.name:  # tool-name-in-every-chunk
            self._note("tool-name-repeated", f"the name {name[:40]!r} came again with a later fragment")
        elif name.startswith(call.name):
            call.name = name
        else:
            call.name += name

    # The whole call.

    def _build(self, call: _Call, note: Note, ids: set[str]) -> ToolCall:
        if not call.id and self._by_the_book:  # tool-id-missing
            note("tool-id-missing", f"the call of {call.name[:40]!r} has no id")
        raw, arguments, problem = call.arguments.decoded(note, depth=self._depth)
        if call.problem is not None:
            problem = call.problem
        if not call.name:
            problem = problem or "the call has no name"
        return ToolCall(
            id=call.id if call.id and call.id not in ids else call.made_up,
            name=call.name or _NAMELESS,
            raw=raw,
            arguments=arguments if problem is None else None,
            problem=problem,
        )
