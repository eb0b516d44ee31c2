"""`motamot matrix`: each writer of event streams with each reader, over an answer, and what is lost on the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from motamot.cli.console import harmless, say, write_result
from motamot.errors import LimitExceeded, MotamotError

__all__ = ["matrix"]

_ANSWER_BYTES = 1 << 18
"""The longest answer: all pairs over it take about ten seconds."""

T = TypeVar("T")


def matrix(
    answer: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The answer, a text in UTF-8; -: stdin. Else one with a list in it."),
    ] = None,
    chunks: Annotated[
        str,
        typer.Option(
            metavar="NAMES|FILE",
            help="What cuts it into pieces, separated by commas; or a JSON list of the pieces themselves.",
        ),
    ] = "sentence,sentence-lossless",
    writers: Annotated[str | None, typer.Option(metavar="NAMES", help="These writers only.")] = None,
    readers: Annotated[str | None, typer.Option(metavar="NAMES", help="These readers only.")] = None,
    real: Annotated[
        bool,
        typer.Option("--real", help="Client libraries of this machine as readers, too: Python's, and npm's by Node."),
    ] = False,
    node_modules: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER", help="Where npm's are, for --real; else ./node_modules.")
    ] = None,
    read_bytes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="What one network read holds; else one event.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON document instead of a table.")] = False,
    names: Annotated[bool, typer.Option("--list", help="List what there is, with its habits, and end.")] = False,
    lesson: Annotated[
        bool, typer.Option("--lesson", help="The lesson: an answer on the wire, against a host that is started for it.")
    ] = False,
) -> None:
    """Put each writer before each reader over an answer, and tell what the reader's user gets.

    A cell counts as the lesson does (lines and line breaks missing); below the table stands what really became of the
    text, and of its bullets, paragraphs and code on a page. Writers and readers of the same kind of data are paired,
    unless both are named.

    Exit status: 0 it ran, 2 it could not.
    """
    from motamot.cli import matrix_forms
    from motamot.peers import CHUNKERS, READERS, WRITERS
    from motamot.peers.matrix import Split, cells

    if lesson:
        if answer or writers or readers or real or read_bytes or as_json or names:
            raise MotamotError("--lesson stands alone: its answers, writers and readers are the lesson's")
        from motamot.cli.matrix_lesson import run

        write_result(harmless(run()))
        return
    known = dict(READERS)
    if real:
        from motamot.peers.real import real_readers

        found, missing = real_readers(tuple(node_modules or ()))
        known |= found
        if readers is None or not all(name in known for name in readers.split(",")):
            for sentence in missing:
                say(f"motamot: {sentence}")
    if names:
        write_result(harmless(matrix_forms.listing(WRITERS, known, CHUNKERS)))
        return
    text = _answer(answer) if answer is not None else None
    if all(name in CHUNKERS for name in chunks.split(",")):
        text = _sample() if text is None else text
        splits = [Split(title=cut.title, pieces=tuple(cut.cut(text))) for cut in _named("chunks", chunks, CHUNKERS)]
    else:
        pieces = _pieces(chunks, CHUNKERS)
        text = "".join(pieces) if text is None else text
        splits = [Split(title=Path(chunks).name, pieces=tuple(pieces))]
    if not text:
        raise MotamotError("the answer is empty: nothing of it can get lost")
    rows = list(
        cells(
            text,
            splits,
            _named("writers", writers, WRITERS),
            _named("readers", readers, known),
            read_bytes=read_bytes,
            all_pairs=writers is not None and readers is not None,
        )
    )
    form = matrix_forms.document if as_json else matrix_forms.table
    write_result(form(text, splits, rows))


def _named(option: str, names: str | None, known: Mapping[str, T]) -> list[T]:
    """What the names stand for; all there is where none are given. Raises: MotamotError naming those there are."""
    if names is None:
        return list(known.values())
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise MotamotError(f"--{option}: there is no {name!r}; there are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(wanted)]


def _sample() -> str:
    """The answer of the lesson."""
    from motamot.peers.answers import IMPROVISATION

    return IMPROVISATION


def _answer(file: Path) -> str:
    return _utf8("--answer", file)


def _pieces(name: str, known: Mapping[str, object]) -> list[str]:
    """The pieces in a file."""
    if not Path(name).exists():
        raise MotamotError(f"--chunks: {name!r} is no file, and none of {', '.join(known)}")
    try:
        pieces = json.loads(_utf8("--chunks", Path(name)))
    except (ValueError, RecursionError) as error:
        raise MotamotError(f"--chunks: {name} is not JSON: {error}") from None
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise MotamotError(f'--chunks: {name} must be a list of texts, as ["One. ", "Two."]')
    return pieces


def _utf8(option: str, file: Path) -> str:
    """A file's text, its line ends as they are. Raises: MotamotError, LimitExceeded."""
    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(_ANSWER_BYTES + 1)
        else:
            with file.open("rb") as opened:
                data = opened.read(_ANSWER_BYTES + 1)
    except OSError as error:
        raise MotamotError(f"{option}: {file} cannot be read: {error.strerror or error}") from None
    if len(data) > _ANSWER_BYTES:
        raise LimitExceeded(
            f"{option}: {file} has more than {_ANSWER_BYTES:,} bytes; all pairs over it would take minutes",
            limit="answer_bytes",
            maximum=_ANSWER_BYTES,
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MotamotError(f"{option}: {file} is not UTF-8: byte {error.start} cannot be read") from None
