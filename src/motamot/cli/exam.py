"""`motamot exam`: holds both ends of a chatbot and tells what it does to an answer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from motamot.cli.console import is_terminal, say, write_result
from motamot.errors import InvalidRequest, MotamotError

if TYPE_CHECKING:
    from motamot.exam.case import Case
    from motamot.exam.chatbot import Chatbot
    from motamot.exam.judging import Verdict
    from motamot.exam.presets import Preset
    from motamot.exam.report import Report
    from motamot.scripted import ScriptedModel
    from motamot.tape import Request

__all__ = ["exam"]

_FILE = Path("motamot-exam.toml")
_PORT = 4010
_WIDTH = (60, 120)
_WAIT_SECONDS = 60.0


def exam(
    url: Annotated[
        str | None, typer.Argument(help="Where the chatbot's visitors ask: http://localhost:3000/api/chat")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How it is asked: motamot, openai, ui-message, ag-ui, ga-text, morceaux, gradio; or "
            "events, event-text, json-lines, plain-text with --request. Tried out where it is not said.",
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Start the chatbot by this, its model's address set.")
    ] = None,
    request: Annotated[
        Path | None, typer.Option(metavar="FILE", help='The request\'s JSON, with "{{message}}" where it is asked.')
    ] = None,
    read: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the text stands: choices.0.delta.content")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="A header of each request.")
    ] = None,
    stop: Annotated[
        str | None, typer.Option(metavar="'POST URL BODY'", help="A route that stops; else leaving is the stop.")
    ] = None,
    page: Annotated[
        str | None, typer.Option(metavar="URL", help="A browser is the visitor of this page, in place of URL.")
    ] = None,
    into: Annotated[
        str | None, typer.Option(metavar="SELECTOR", help="Where a visitor types; the only place there is.")
    ] = None,
    button: Annotated[str | None, typer.Option(metavar="SELECTOR", help="What sends; the Enter key.")] = None,
    answer: Annotated[str | None, typer.Option(metavar="SELECTOR", help="Where answers stand; looked for.")] = None,
    opens: Annotated[
        str | None, typer.Option("--open", metavar="SELECTOR", help="What opens the chat, where it must be opened.")
    ] = None,
    tool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which of the chatbot's tools the model calls: the first one; none: none."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Twelve cases.")] = False,
    only: Annotated[str | None, typer.Option(metavar="PROMISES", help="Only these: exact,live")] = None,
    case: Annotated[list[int] | None, typer.Option(metavar="N", help="Only this case.")] = None,
    serial: Annotated[bool, typer.Option("--serial", help="One case after the other.")] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"Of the scripted model; {_PORT}, or a free one with --run.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as a page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML.")] = None,
) -> None:
    """Examine a chatbot: is what a visitor gets what the model wrote, live, once, stoppable, and errors as errors?

    A scripted model stands behind the chatbot and a visitor in front. Point the chatbot's model address at the scripted
    model (its addresses are printed), or have the chatbot started with --run. Some 250 conversations are written into
    it, and a tool that it offers the model is called: use one that is for tests. What is not said is read from
    motamot-exam.toml, where there is one.

    Exit status: 0 what could be judged is kept, 1 something is lost, 2 it could not be examined.
    """
    given = {
        "url": url,
        "preset": preset,
        "run": run,
        "request": str(request) if request else None,
        "read": read,
        "headers": header,
        "stop": stop,
        "page": page,
        "into": into,
        "button": button,
        "answer": answer,
        "open": opens,
        "tool": tool,
        "port": port,
    }
    plan = _plan(given)
    chosen = _chosen(quick, only, case)
    report = asyncio.run(_examine(plan, chosen, serial=serial, command=_command(given)))
    _write(report, html=html, junit=junit, json=json)
    if report.status:
        raise typer.Exit(report.status)


@dataclass(slots=True)
class _Plan:
    """What is examined, and how. Named as in motamot-exam.toml."""

    url: str = ""
    preset: str | None = None
    run: str | None = None
    request: str | None = None
    read: str | None = None
    headers: list[str] = field(default_factory=list)
    stop: str | None = None
    page: str | None = None
    into: str | None = None
    button: str | None = None
    answer: str | None = None
    open: str | None = None
    tool: str | None = None
    port: int | None = None
    ignore: list[int] = field(default_factory=list)


def _plan(given: dict[str, Any]) -> _Plan:
    told: dict[str, Any] = {}
    if _FILE.exists():
        try:
            told = tomllib.loads(_FILE.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidRequest(f"{_FILE} cannot be read: {error}") from None
        known = {one.name for one in fields(_Plan)}
        if unknown := sorted(set(told) - known):
            raise InvalidRequest(f"{_FILE}: there is no {unknown[0]!r}; there is {', '.join(sorted(known))}")
    plan = _Plan(**told) if _right(told) else _Plan()
    for name, value in given.items():
        if value is not None:
            setattr(plan, name, value)
    if plan.page is not None:
        plan.url = plan.page
    if not plan.url:
        raise InvalidRequest("say where the chatbot's visitors ask: motamot exam http://localhost:3000/api/chat")
    if not plan.url.startswith(("http://", "https://")):
        raise InvalidRequest(f"{plan.url!r} is no address: http://localhost:3000/api/chat", field="url")
    return plan


def _right(told: dict[str, Any]) -> bool:
    """Whether each value is of its kind. Raises: InvalidRequest."""
    for name, value in told.items():
        wanted: Any = {"headers": list, "ignore": list, "port": int}.get(name, str)
        if not isinstance(value, wanted):
            raise InvalidRequest(f"{_FILE}: {name} must be a {wanted.__name__}, not {value!r}", field=name)
    return True


def _command(given: dict[str, Any]) -> str:
    """The command as it was given, for running one case again."""
    words = ["motamot", "exam"]
    if given["url"]:
        words.append(given["url"])
    for name in (
        "preset",
        "run",
        "request",
        "read",
        "stop",
        "page",
        "into",
        "button",
        "answer",
        "open",
        "tool",
        "port",
    ):
        if given[name] is not None:
            words += [f"--{name}", str(given[name])]
    for one in given["headers"] or ():
        name, _, value = one.partition(":")
        secret = name.strip().lower() in ("authorization", "cookie", "x-api-key")
        words += ["-H", f"{name}: …" if secret else f"{name}:{value}"]
    return shlex.join(words)


def _chosen(quick: bool, only: str | None, numbers: Sequence[int] | None) -> list[Case]:
    from motamot.exam.case import cases
    from motamot.findings import Promise

    chosen = list(cases())
    if numbers:
        known = {case.number for case in chosen}
        if unknown := [number for number in numbers if number not in known]:
            raise InvalidRequest(f"there is no case {unknown[0]}; docs/exam-cases.md lists them", field="case")
        return [case for case in chosen if case.number in numbers]
    if only is not None:
        wanted = {word.strip() for word in only.split(",")}
        if unknown_words := sorted(wanted - {str(promise) for promise in Promise}):
            raise InvalidRequest(f"{unknown_words[0]!r} is no promise: {', '.join(Promise)}", field="only")
        chosen = [case for case in chosen if case.promise in wanted]
    return [case for case in chosen if case.quick] if quick else chosen


async def _examine(plan: _Plan, chosen: list[Case], *, serial: bool, command: str) -> Report:
    from motamot.exam.case import scripts
    from motamot.exam.chatbot import Chatbot, addresses, until_there
    from motamot.exam.examiner import ExamError
    from motamot.exam.report import Report
    from motamot.scripted import ScriptedModel

    chosen = [case for case in chosen if case.number not in plan.ignore and (case.page or plan.page is None)]
    if not chosen:
        raise InvalidRequest("no case is left to run")
    port = plan.port if plan.port is not None else 0 if plan.run else _PORT
    model = ScriptedModel(scripts(tuple(chosen)), port=port)
    try:
        await model.start()
    except OSError as error:
        told = os.strerror(error.errno) if error.errno else str(error)
        raise MotamotError(f"the scripted model cannot listen on port {port}: {told}; another one: --port") from None
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(model.close)
        env = addresses(model.url)
        count = sum(case.visitors for case in chosen) + 1
        say(f"motamot exam writes about {count} conversations into {plan.url}: use one that is for tests")
        for name, value in env.items():
            say(f"  {name}={value}")
        started: Chatbot | None = None
        if plan.run is not None:
            say(f"  starting {plan.run}")
            started = await stack.enter_async_context(Chatbot(plan.run, plan.url, environ=env))
        elif not await until_there(plan.url, _WAIT_SECONDS):
            raise ExamError(f"nothing listens at {plan.url}: start the chatbot with the address above, or say --run")
        began = time.monotonic()
        with _Progress(len(chosen)) as progress:
            if plan.page is not None:
                name, verdicts = "page", await _in_a_page(plan, model, chosen, progress.one)
            else:
                name, verdicts = await _by_hand(plan, model, chosen, progress.one, started=started, serial=serial)
        took = time.monotonic() - began
        return Report(url=plan.url, preset=name, verdicts=verdicts, took=took, command=command)


async def _by_hand(
    plan: _Plan,
    model: ScriptedModel,
    chosen: list[Case],
    told: Callable[[Verdict], None],
    *,
    started: Chatbot | None,
    serial: bool,
) -> tuple[str, list[Verdict]]:
    """Ask as the chatbot's clients do. Returns: the preset's name, and the verdicts."""
    from motamot.exam.examiner import Examiner

    examiner = Examiner(
        plan.url,
        await _preset(plan, model),
        model,
        headers=_headers(plan.headers),
        stop=_stop(plan.stop),
        told=told,
        started=started,
        call="" if plan.tool == "none" else plan.tool,
    )
    await examiner.warm_up()
    if calls := examiner.calls(chosen):
        assert examiner.tool is not None
        say(f"  the model calls its tool {examiner.tool.name} in {calls} of them, with arguments made up")
    return examiner.preset.name, await examiner.run(chosen, serial=serial)


async def _in_a_page(
    plan: _Plan, model: ScriptedModel, chosen: list[Case], told: Callable[[Verdict], None]
) -> list[Verdict]:
    """Ask in the chatbot's own page, in a browser."""
    from motamot.exam.on_page import PageExaminer
    from motamot.exam.page import Plan

    where = Plan(into=plan.into, button=plan.button, answer=plan.answer, opens=plan.open)
    examiner = PageExaminer(plan.url, model, plan=where, told=told)
    await examiner.warm_up()
    return await examiner.run(chosen)


async def _preset(plan: _Plan, model: ScriptedModel) -> Preset:
    """The preset that was named, or that the address tells, or the first that works."""
    from motamot.exam.asking import way_of
    from motamot.exam.examiner import ExamError, Examiner, Silent
    from motamot.exam.gradio import GRADIO
    from motamot.exam.presets import FORMS, PRESETS, template

    if plan.request is not None or plan.read is not None or plan.preset in FORMS:
        return template(plan.preset or "events", _body(plan.request), read=plan.read)
    if plan.preset is not None:
        if plan.preset == GRADIO.name:
            return GRADIO
        if plan.preset not in PRESETS:
            names = ", ".join([*PRESETS, GRADIO.name, *FORMS])
            raise InvalidRequest(f"there is no preset {plan.preset!r}: {names}", field="preset")
        return PRESETS[plan.preset]
    if (way := way_of(plan.url)) is not None:
        return PRESETS[way.protocol]
    for name in ("ui-message", "openai", "motamot", "ag-ui"):
        examiner = Examiner(plan.url, PRESETS[name], model, headers=_headers(plan.headers))
        try:
            heard = await examiner.warm_up()
        except Silent:
            raise  # whatever it is asked: to try the others would take minutes
        except ExamError:
            continue
        if heard.text.strip() == "Ready.":
            say(f"  it answers as {name}")
            return PRESETS[name]
    raise ExamError(
        f"how {plan.url} is asked could not be found out: --preset, or --request FILE with --read PATH, says it"
    )


def _body(file: str | None) -> str | None:
    try:
        return Path(file).read_text("utf-8") if file is not None else None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the request {file} cannot be read: {error}", field="request") from None


def _headers(told: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found = []
    for one in told:
        name, colon, value = one.partition(":")
        if not colon or not name.strip() or "\n" in one or "\r" in one:
            raise InvalidRequest(f"{one!r} is no header: -H 'Name: value'", field="header")
        found.append((name.strip(), value.strip()))
    return tuple(found)


def _stop(told: str | None) -> Request | None:
    if told is None:
        return None
    from motamot.tape import Request

    method, _, rest = told.strip().partition(" ")
    url, _, body = rest.strip().partition(" ")
    if not url.startswith(("http://", "https://")):
        raise InvalidRequest(f"{told!r} is no route: --stop 'POST http://localhost:3000/api/stop'", field="stop")
    data = (body or "{}").encode()
    return Request(method=method.upper(), url=url, headers=(("Content-Type", "application/json"),), body=data)


class _Progress:
    """A bar on a terminal; elsewhere nothing."""

    def __init__(self, count: int) -> None:
        self._bar: Any = None
        if is_terminal(sys.stderr):
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("warming up", total=count)

    def __enter__(self) -> _Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def one(self, verdict: Verdict) -> None:
        """A verdict is known."""
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=f"{verdict.case.number} {verdict.case.title}"[:50])


def _write(report: Report, *, html: Path | None, junit: Path | None, json: bool) -> None:
    from motamot.cli import exam_forms as forms

    if html is not None:
        _write_file(html, forms.html_page(report).encode("utf-8", "replace"))
    if junit is not None:
        _write_file(junit, forms.junit(report))
    if json:
        write_result(forms.json_text(report))
        return
    width = min(max(shutil.get_terminal_size((100, 24)).columns, _WIDTH[0]), _WIDTH[1])
    colours = is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")
    write_result(forms.people(report, width=width, colours=colours))


def _write_file(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise MotamotError(f"the report {path} cannot be written: {error.strerror or error}") from None
