"""Where `motamot check` gets what it checks: a file, standard input, a URL asked once, a page visited."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from motamot.cli.check_outcome import failure, still_open, unjudged
from motamot.cli.check_report import Checked, Whole
from motamot.cli.console import is_terminal, say
from motamot.errors import InvalidRequest
from motamot.exam.asking import Answer, answer_in, ask_whole, question
from motamot.exam.compare import compare
from motamot.exam.page import Heard, Plan, visit
from motamot.exam.refused import refused
from motamot.findings import examine
from motamot.findings.recognise import protocol_named
from motamot.tape import Request, Tape, bounds, load
from motamot.tape.recording import Recorder

__all__ = ["Asking", "headers_of", "recorded", "visited"]

_URL = re.compile(r"https?://", re.IGNORECASE)
# A note of `motamot.tape.load` that tells of a cut answer; of a HAR cut elsewhere, the answers in it are whole.
_CUT = re.compile(r"The tape was cut|The HAR was cut at byte [\d,]+, inside this entry")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_PAGE = re.compile(r"(https?|file)://", re.IGNORECASE)
_HOST = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+)(:\d{1,5})?/\S*|localhost(:\d{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is asked, and of what of it. The fields are the command's options; headers are read already."""

    message: str | None = None
    data: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    protocol: str | None = None
    model: str = ""
    whole: str | None = None
    whole_path: str | None = None
    select: str | None = None
    seconds: float = 120


def headers_of(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Headers as `Name: value`, or `@FILE` with such lines. Raises: InvalidRequest, which quotes no value."""
    found = []
    for one in given:
        lines = _file(one[1:], "-H").decode("utf-8", "replace").splitlines() if one.startswith("@") else [one]
        for line in filter(str.strip, lines):
            name, colon, value = line.partition(":")
            if not colon or not _TOKEN.fullmatch(name.strip()) or "\n" in value or "\r" in value:
                raise InvalidRequest("a header is given as -H 'Name: value'; this one is no header", field="header")
            found.append((name.strip(), value.strip()))
    return tuple(found)


def recorded(what: str, asking: Asking) -> list[Checked]:
    """What a file, standard input (`-`) or a URL holds, checked.

    Raises: MotamotError where it cannot be read, or asked.
    """
    protocol = _protocol(asking.protocol)
    if _URL.match(what):
        asked = _question(what, asking)
        tapes = [asyncio.run(_record(asked, asking.seconds))]
    else:
        if asking.whole is None and (asking.message is not None or asking.data is not None or asking.headers):
            raise InvalidRequest("--message, -d and -H are for a URL, or for --whole: a recording is not asked")
        asked, tapes = None, _loaded(what, asking.select)
    whole = None
    if asking.whole is not None:
        if len(tapes) > 1:
            raise InvalidRequest(f"the recording holds {len(tapes)} answers: choose one for --whole with --select")
        whole = _whole(asking.whole, asked or tapes[0].request, asking)
    return [
        _checked(tape, _name(what, tape, number, len(tapes)), protocol, whole) for number, tape in enumerate(tapes, 1)
    ]


def visited(url: str, plan: Plan, *, protocol: str | None = None) -> list[Checked]:
    """What a visit of a page heard, each answer checked and compared with what the page showed.

    Raises: MotamotError where no browser can be opened, or the page not be visited.
    """
    protocol = _protocol(protocol)
    if not _PAGE.match(url):
        raise InvalidRequest(f"--page {url[:200]!r} is no address of a page: it begins with http:// or https://")
    heard = asyncio.run(_visit(url, plan))
    if not heard:
        problem = "no script of the page asked for a stream while it was visited (requests of workers are not seen)"
        return [Checked(name=url, problem=problem)]
    return [_of_page(one, _name(url, one.tape, number, len(heard)), protocol) for number, one in enumerate(heard, 1)]


# --- recordings


def _protocol(name: str | None) -> str | None:
    try:
        return None if name is None else protocol_named(name)
    except ValueError as error:
        raise InvalidRequest(str(error), field="protocol") from None


def _question(url: str, asking: Asking) -> Request:
    body = None if asking.data is None else _body(asking.data)
    if body is not None and asking.message is not None:
        raise InvalidRequest("--message and -d are two ways to say what is asked: choose one")
    return question(
        url,
        message=asking.message,
        body=body,
        headers=asking.headers,
        protocol=asking.protocol,
        model=asking.model,
    )


def _body(data: str) -> bytes:
    if not data.startswith("@"):
        return os.fsencode(data)
    return _stdin() if data == "@-" else _file(data[1:], "-d")


def _file(name: str, option: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            read = file.read(bounds.REQUEST_BYTES + 1)
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidRequest(f"{option}: the file {name} cannot be read: {told}") from error
    if len(read) > bounds.REQUEST_BYTES:
        raise InvalidRequest(f"{option}: the file {name} is larger than {bounds.REQUEST_BYTES:,} bytes")
    return read


def _stdin() -> bytes:
    if sys.stdin is None or is_terminal(sys.stdin):
        raise InvalidRequest("standard input is a terminal: nothing is piped into it")
    return sys.stdin.buffer.read(bounds.FILE_BYTES + 1)


async def _record(asked: Request, seconds: float) -> Tape:
    recorder = Recorder(asked.url, method=asked.method, headers=asked.headers, body=asked.body, seconds=seconds)
    with _interrupted(recorder.leave):
        return await recorder.run()


def _loaded(what: str, select: str | None) -> list[Tape]:
    number = int(select) if select is not None and select.isdecimal() and len(select) < 10 else select
    if what == "-":
        return load(_stdin(), select=number)
    if _HOST.fullmatch(what) and not Path(what).exists():
        raise InvalidRequest(f"there is no file {what}; if it is an address, it begins with http:// or https://")
    return load(what, select=number)


def _name(what: str, tape: Tape, number: int, of: int) -> str:
    name = "standard input" if what == "-" else what
    if tape.request is not None and tape.request.url:
        name = f"{tape.request.method} {tape.request.url}"
    return f"answer {number} of {of}: {name}" if of > 1 else name


def _checked(tape: Tape, name: str, protocol: str | None, whole: Answer | None) -> Checked:
    if any(map(_CUT.match, tape.notes)):
        # What is missing at the end was lost with the file, and not on the wire: judged as if the recorder had left.
        tape = replace(tape, end="left")
    examined = examine(tape, protocol=protocol, whole=None if whole is None else whole.text)
    problem = refused(tape, examined)
    if problem is not None:
        return Checked(name=name, tape=tape, examined=examined, problem=problem)
    compared = None
    if whole is not None:
        equal = _line_ends(examined.text) == _line_ends(whole.text)
        compared = Whole(characters=len(whole.text), path=whole.path, equal=equal)
    failed = failure(tape, examined)
    return Checked(
        name=name,
        tape=tape,
        examined=still_open(tape, examined),
        failed=failed,
        unjudged=unjudged(tape, examined, failed),
        findings=examined.findings,
        whole=compared,
    )


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _whole(where: str, asked: Request | None, asking: Asking) -> Answer:
    if not _URL.match(where):
        return answer_in(_file(where, "--whole"), asking.whole_path)
    if asked is None and asking.message is None and asking.data is None:
        raise InvalidRequest("the recording does not hold what was asked: say it for --whole with --message or -d")
    if asked is None or asking.data is not None:
        body = b"" if asking.data is None else _body(asking.data)
        asked = Request(method="POST", url=where, body=body)
    asked = ask_whole(where, asked, message=asking.message, model=asking.model, headers=asking.headers)
    tape = asyncio.run(_record(asked, asking.seconds))
    if tape.status is not None and tape.status >= 300:
        problem = refused(tape, examine(tape))
        raise InvalidRequest(f"the whole answer (--whole): {problem}", field="whole")
    return answer_in(tape.body, asking.whole_path)


# --- pages


async def _visit(url: str, plan: Plan) -> list[Heard]:
    stop = asyncio.Event()
    with _interrupted(stop.set), _enter(stop.set) if plan.window else contextlib.nullcontext():
        if plan.window:
            say("motamot: a browser opens: chat there; close it, or press Enter here, when you are done")
        return await visit(url, plan, stop=stop, tell=lambda words: say(f"motamot: {words}"))


@contextlib.contextmanager
def _interrupted(act: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C leaves the answer, and what came of it is reported; a second one ends the command."""
    loop = asyncio.get_running_loop()

    def leave() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        act()

    loop.add_signal_handler(signal.SIGINT, leave)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@contextlib.contextmanager
def _enter(act: Callable[[], None]) -> Iterator[None]:
    """A line typed at this terminal ends the visit."""
    if not is_terminal(sys.stdin):
        yield
        return
    loop = asyncio.get_running_loop()

    def typed() -> None:
        sys.stdin.readline()
        act()

    loop.add_reader(sys.stdin.fileno(), typed)
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin.fileno())


def _of_page(heard: Heard, name: str, protocol: str | None) -> Checked:
    one = _checked(heard.tape, name, protocol, None)
    if one.problem is not None or one.examined is None:
        return one
    compared = compare(heard, one.examined.text)
    unjudged = one.unjudged
    if heard.unfit and unjudged is None:
        unjudged = "nothing on the page fits --answer: the wire was checked, and what the page shows of it was not"
    return replace(one, unjudged=unjudged, findings=(*one.findings, *compared.findings), compared=compared)
