"""Charts as SVG, drawn here: no script, no style attribute, no other host. A table beside each has its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from motamot.server.dashboard.markup import Child, Html, el

__all__ = ["Series", "bars", "lines", "moments"]

_WIDTH, _HEIGHT = 720.0, 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 92.0, 8.0, 14.0, 32.0
_MOST_LABELS = 7  # below the axis


@dataclass(frozen=True, slots=True)
class Series:
    """What is drawn in one colour. values: one a day; None where nothing was measured. colour: 1 to 8."""

    name: str
    values: Sequence[float | None]
    colour: int


def bars(
    title: str, described: str, days: Sequence[str], series: Sequence[Series], tell: Callable[[float], str]
) -> Html:
    """A bar a day, its parts on top of each other. tell: a value in words."""
    totals = [sum(one.values[n] or 0.0 for one in series) for n in range(len(days))]
    top = _nice(max(totals, default=0.0))
    step = _step(days)
    below = [_HEIGHT - _BOTTOM] * len(days)
    drawn: list[Child] = []
    for one in series:
        parts = []  # one element for all bars of a colour: pages of many days stay small
        for n, value in enumerate(one.values):
            if value:
                height = value / top * _plot()
                parts.append(
                    f"M{_LEFT + (n + 0.1) * step:.1f} {below[n]:.1f}h{step * 0.8:.1f}v{-height:.1f}h{-step * 0.8:.1f}z"
                )
                below[n] -= height
        drawn.append(el("path", d="".join(parts), class_=f"c{one.colour}"))
    return _figure(title, described, days, series, top, tell, drawn)


def lines(
    title: str, described: str, days: Sequence[str], series: Sequence[Series], tell: Callable[[float], str]
) -> Html:
    """A line through the days, with a gap where nothing was measured. tell: a value in words."""
    top = _nice(max((value for one in series for value in one.values if value is not None), default=0.0))
    step = _step(days)
    drawn: list[Child] = []
    for one in series:
        run: list[str] = []
        for n, value in enumerate([*one.values, None]):
            if value is None:
                if len(run) > 1:
                    drawn.append(el("polyline", points=" ".join(run), class_=f"line c{one.colour}"))
                run = []
                continue
            x, y = _LEFT + (n + 0.5) * step, _HEIGHT - _BOTTOM - value / top * _plot()
            run.append(f"{_at(x)},{_at(y)}")
            drawn.append(el("circle", cx=_at(x), cy=_at(y), r="3", class_=f"c{one.colour}"))
    return _figure(title, described, days, series, top, tell, drawn)


def moments(described: str, points: Sequence[tuple[str, float | None]], tell: Callable[[float], str]) -> Html | None:
    """Moments on a line, to scale, by number; nothing where fewer than two are known."""
    known = [(name, at) for name, at in points if at is not None]
    last = max((at for _, at in known), default=0.0)
    if len(known) < 2 or last <= 0:
        return None
    wide = _WIDTH - 40.0
    drawn: list[Child] = [el("line", x1="20", x2=_at(_WIDTH - 20), y1="34", y2="34", class_="axis")]
    for n, (name, at) in enumerate(known, 1):
        x = _at(20 + at / last * wide)
        drawn.append(
            el(
                "g",
                el("title", f"{name}: {tell(at)}"),
                el("circle", cx=x, cy="34", r="5", class_=f"c{(n - 1) % 8 + 1}"),
                # Moments may lie close together: every other number stands below the line.
                el("text", str(n), x=x, y="20" if n % 2 else "58", text_anchor="middle"),
            )
        )
    return el("svg", drawn, viewBox=f"0 0 {_WIDTH:g} 64", role="img", aria_label=described)


def _figure(
    title: str,
    described: str,
    days: Sequence[str],
    series: Sequence[Series],
    top: float,
    tell: Callable[[float], str],
    drawn: list[Child],
) -> Html:
    svg = el(
        "svg",
        _axes(days, top, tell),
        drawn,
        _hints(days, series, tell),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        role="img",
        aria_label=described,
    )
    legend = el(
        "ul",
        [el("li", _swatch(one.colour), one.name) for one in series],
        class_="legend",
    )
    return el("figure", el("figcaption", title), legend if len(series) > 1 else None, svg)


def _hints(days: Sequence[str], series: Sequence[Series], tell: Callable[[float], str]) -> list[Child]:
    """What a pointer that rests on a day is told: its values."""
    step = _step(days)
    hints: list[Child] = []
    for n, day in enumerate(days):
        values = [f"{one.name} {tell(value)}" for one in series if (value := one.values[n])]
        if values:
            place = el(
                "rect", x=_at(_LEFT + n * step), y=_at(_TOP), width=_at(step), height=_at(_plot()), class_="hint"
            )
            hints.append(el("g", el("title", f"{day}: {', '.join(values)}"), place))
    return hints


def _swatch(colour: int) -> Html:
    square = el("rect", width="10", height="10", class_=f"c{colour}")
    return el("svg", square, viewBox="0 0 10 10", aria_hidden="true", width="10", height="10")


def _axes(days: Sequence[str], top: float, tell: Callable[[float], str]) -> list[Child]:
    drawn: list[Child] = []
    for part in (0.0, 0.5, 1.0):
        y = _HEIGHT - _BOTTOM - part * _plot()
        drawn += [
            el("line", x1=_at(_LEFT), x2=_at(_WIDTH - _RIGHT), y1=_at(y), y2=_at(y), class_="axis"),
            el("text", tell(part * top), x=_at(_LEFT - 6), y=_at(y + 5), text_anchor="end"),
        ]
    step = _step(days)
    every = max(1, math.ceil(len(days) / _MOST_LABELS))
    for n in range(0, len(days), every):
        x = _LEFT + (n + 0.5) * step
        drawn.append(el("text", days[n][5:], x=_at(x), y=_at(_HEIGHT - 8), text_anchor="middle"))
    return drawn


def _step(days: Sequence[str]) -> float:
    return (_WIDTH - _LEFT - _RIGHT) / max(1, len(days))


def _plot() -> float:
    return _HEIGHT - _TOP - _BOTTOM


def _nice(most: float) -> float:
    """The end of an axis: 1, 2 or 5 times a power of ten, at least what is drawn."""
    if not most > 0 or not math.isfinite(most):
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most * 0.999999)


def _at(value: float) -> str:
    return f"{value:.1f}"
