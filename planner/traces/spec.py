"""Synthetic traffic in one line, or as the same keys in YAML.

``poisson:rate=5,duration=10m,input=normal(4096,2048,10,8192),output=lognormal(300,200)`` is a kind and its keys. Kinds:

=========== ===================================================== ========================================================
poisson     ``rate``                                              exponential gaps
gamma       ``rate``, ``cv``                                      gaps with this coefficient of variation: bursts above 1
constant    ``rate``                                              even gaps
staircase   ``rates=[2,4,6]``, ``step=5m`` (or a list of lengths) each rate for so long
ramp        ``from``, ``to``                                      in a straight line
diurnal     ``low``, ``high``, ``period=24h``, ``peak=12h``       a cosine
=========== ===================================================== ========================================================

Every kind takes ``duration`` or ``requests`` (or both), ``cv``, ``seed``, and lengths: ``input`` and ``output`` as a number,
``uniform(low,high)``, ``normal(mean,sd,low,high)`` or ``lognormal(mean,sd,low,high)`` (bounds may be left out), or
``lengths=FILE``, whose pairs are drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from models.units import Rps, Seconds
from planner.errors import ConfigurationError, Finding, allowed_by, nearest
from planner.traces.generating import Generator
from planner.traces.lengths import Fixed, Independent, Length, Lengths, LogNormal, Normal, Uniform
from planner.traces.shapes import Constant, Diurnal, Ramp, Shape, Steps
from planner.traces.texts import MOST_TOKENS

__all__ = ["KINDS", "SECONDS", "Asked", "generator_of", "lengths_from", "parse_spec"]

KINDS: Final = ("poisson", "gamma", "constant", "staircase", "ramp", "diurnal")

_COMMON: Final = ("duration", "requests", "cv", "seed", "input", "output", "lengths")
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "poisson": ("rate",),
    "gamma": ("rate",),
    "constant": ("rate",),
    "staircase": ("rates", "step"),
    "ramp": ("from", "to"),
    "diurnal": ("low", "high", "period", "peak"),
}
_FORMS: Final = "a number, uniform(low,high), normal(mean,sd,low,high) or lognormal(mean,sd,low,high)"
_MOST_CV: Final = 50.0
_MOST_RPS: Final = 1e6
_DAY_S: Final = 86_400.0
_DAYS: Final = re.compile(r"\s*(\d+\.?\d*)\s*d(?:ays?)?\s*")
_CALL: Final = re.compile(r"\s*([A-Za-z-]+)\s*\(([^()]*)\)\s*")

RATE: Final[TypeAdapter[float]] = TypeAdapter(Rps)
SECONDS: Final[TypeAdapter[float]] = TypeAdapter(Seconds)

LengthsOf = Callable[[str], Lengths]
"""Reads the lengths of a file."""


def parse_spec(text: str) -> tuple[dict[str, Any], list[Finding]]:
    """Keys and values of a line, with its kind, and parts that are no ``key=value`` or come twice."""
    kind, _, rest = text.partition(":")
    keys: dict[str, Any] = {"kind": kind.strip()}
    findings: list[Finding] = []
    for part in _parts(rest):
        name, equals, value = part.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name:
            findings.append(Finding("", None, "--trace", repr(part.strip()), "key=value, parted by commas"))
        elif name in keys:
            findings.append(Finding("", None, f"--trace: {name}", "this key twice", "each key once"))
        else:
            listed = value.startswith("[") and value.endswith("]")
            keys[name] = [each.strip() for each in _parts(value[1:-1])] if listed else value
    return keys, findings


def _parts(text: str) -> list[str]:
    """Parted by commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


@dataclass(slots=True)
class Asked:
    """Keys of a specification, and what is wrong with them.

    Attributes:
        keys: as they were given.
        where: what findings name, e.g. ``--trace`` or a file.
        findings: of all keys so far.
    """

    keys: Mapping[str, Any]
    where: str = "--trace"
    findings: list[Finding] = field(default_factory=list)

    def wrong(self, name: str, found: str, allowed: str, suggestion: str | None = None) -> None:
        """Take note of a key."""
        self.findings.append(Finding("", None, f"{self.where}: {name}", found, allowed, suggestion))

    def only(self, *known: str) -> None:
        """Take note of keys that are none of these."""
        for name in self.keys:
            if name != "kind" and name not in known:
                self.wrong(str(name), "an unknown key", ", ".join(known), nearest(str(name), known))

    def quantity(
        self, name: str, kind: TypeAdapter[float], default: float | None = None, *, most: float = math.inf
    ) -> float:
        """A number above 0 with its unit; NaN where it is missing or wrong."""
        given = self.keys.get(name)
        if given is None:
            if default is None:
                self.wrong(name, "nothing", "a value")
            return math.nan if default is None else default
        found = self._valid(name, given, kind)
        if found is not None and not 0 < found <= most:
            self.wrong(name, repr(given), "more than 0" if found <= 0 else f"at most {most:g}")
            return math.nan
        return math.nan if found is None else found

    def at_least_0(self, name: str, kind: TypeAdapter[float], given: object) -> float:
        """A number with its unit; NaN where it is wrong."""
        found = self._valid(name, given, kind)
        return math.nan if found is None else found

    def _valid(self, name: str, given: object, kind: TypeAdapter[float]) -> float | None:
        days = _DAYS.fullmatch(str(given)) if kind is SECONDS else None
        try:
            return float(kind.validate_python(f"{float(days[1]) * 24} h" if days else given))
        except (ValidationError, TypeError) as cause:
            errors = cause.errors(include_url=False) if isinstance(cause, ValidationError) else []
            self.wrong(name, repr(given), allowed_by(errors[0]) if errors else "a number with its unit")
            return None

    def whole(self, name: str, default: int | None, *, least: int = 0) -> int | None:
        """A whole number."""
        given = self.keys.get(name)
        if given is None:
            return default
        try:
            found = int(str(given))
        except ValueError:
            found = least - 1
        if found < least:
            self.wrong(name, repr(given), f"a whole number from {least}")
        return max(found, least)

    def number(self, name: str, default: float, *, most: float) -> float:
        """A bare number from 0."""
        given = self.keys.get(name, default)
        try:
            found = float(given)
        except (TypeError, ValueError):
            found = math.nan
        if not 0 <= found <= most:
            self.wrong(name, repr(given), f"a number from 0 to {most:g}")
            return math.nan
        return found

    def list_of(self, name: str) -> list[Any]:
        """One value or several."""
        given = self.keys.get(name)
        if given is None:
            self.wrong(name, "nothing", "a list such as [2,4,6]")
            return []
        listed = list(given) if isinstance(given, list | tuple) else [given]
        if not listed:
            self.wrong(name, "an empty list", "a list such as [2,4,6]")
        return listed


def generator_of(
    keys: Mapping[str, Any],
    *,
    lengths_of: LengthsOf,
    where: str = "--trace",
    seed: int = 0,
    earlier: Iterable[Finding] = (),
) -> Generator:
    """The traffic that keys describe.

    Args:
        keys: with ``kind``; see the module.
        lengths_of: reads the file that ``lengths`` names.
        where: what findings name.
        seed: where the keys give none.
        earlier: what was found wrong before.

    Raises:
        ConfigurationError: everything that is wrong with them at once.
    """
    asked = Asked(keys, where, list(earlier))
    kind = str(keys.get("kind", ""))
    if kind not in KINDS:
        asked.wrong("kind", repr(kind), ", ".join(KINDS), nearest(kind, KINDS))
        raise ConfigurationError.from_findings(asked.findings)
    asked.only(*_OWN[kind], *_COMMON)
    if kind == "gamma" and "cv" not in keys:
        asked.wrong("cv", "nothing", "a coefficient of variation, e.g. 2")
    cv = asked.number("cv", 0.0 if kind == "constant" else 1.0, most=_MOST_CV)
    most, own_seed = asked.whole("requests", None, least=1), asked.whole("seed", seed)
    shape = _shape(kind, asked)
    lengths = lengths_from(asked, lengths_of)
    if asked.findings or lengths is None or shape is None:
        raise ConfigurationError.from_findings(asked.findings)
    return Generator(shape, lengths, cv, most, own_seed or 0)


def _shape(kind: str, asked: Asked) -> Shape | None:
    if kind == "staircase":
        return _staircase(asked)
    endless = "requests" in asked.keys and kind in {"poisson", "gamma", "constant"}
    if "duration" not in asked.keys and not endless:
        needs = "a time such as 10m" + (" (or requests)" if kind in {"poisson", "gamma", "constant"} else "")
        asked.wrong("duration", "nothing", needs)
        duration_s = math.nan
    else:
        duration_s = asked.quantity("duration", SECONDS, math.inf)
    if kind == "ramp":
        ends = [asked.at_least_0(name, RATE, asked.keys.get(name)) for name in ("from", "to")]
        if max(ends) == 0 or max(ends) > _MOST_RPS:
            asked.wrong("to", f"{ends[1]:g}", f"a rate above 0 at one end, at most {_MOST_RPS:g} req/s")
        return Ramp(ends[0], ends[1], duration_s)
    if kind == "diurnal":
        return _diurnal(asked, duration_s)
    return Constant(asked.quantity("rate", RATE, most=_MOST_RPS), duration_s)


def _diurnal(asked: Asked, duration_s: float) -> Shape:
    high = asked.quantity("high", RATE, most=_MOST_RPS)
    low = asked.at_least_0("low", RATE, asked.keys.get("low", 0.0))
    if low > high:
        asked.wrong("low", f"{low:g}", f"at most high, {high:g} req/s")
    period_s = asked.quantity("period", SECONDS, _DAY_S)
    peak = asked.keys.get("peak")
    peak_s = period_s / 2 if peak is None else asked.at_least_0("peak", SECONDS, peak)
    return Diurnal(low, high, period_s, peak_s, duration_s)


def _staircase(asked: Asked) -> Shape | None:
    rates = [asked.at_least_0("rates", RATE, each) for each in asked.list_of("rates")]
    lengths = [asked.at_least_0("step", SECONDS, each) for each in asked.list_of("step")]
    lengths = lengths * len(rates) if len(lengths) == 1 else lengths
    if rates and lengths and len(rates) != len(lengths):
        asked.wrong("step", f"{len(lengths)} lengths for {len(rates)} rates", "one length, or one per rate")
    if any(length <= 0 for length in lengths):
        asked.wrong("step", "a step that takes no time", "more than 0 s")
    if rates and (max(rates) == 0 or max(rates) > _MOST_RPS):
        asked.wrong("rates", f"{max(rates):g}", f"a rate above 0, at most {_MOST_RPS:g} req/s")
    if asked.findings:
        return None
    if "duration" in asked.keys:
        lengths = _cut(lengths, asked.quantity("duration", SECONDS))
    return Steps(tuple(rates[: len(lengths)]), tuple(lengths))


def _cut(lengths: list[float], duration_s: float) -> list[float]:
    """The lengths up to a time; a last step goes on until then."""
    kept, left = [], duration_s
    for length in lengths:
        if left <= 0:
            break
        kept.append(min(length, left))
        left -= length
    if left > 0 and kept:
        kept[-1] += left
    return kept


def lengths_from(asked: Asked, lengths_of: LengthsOf) -> Lengths | None:
    """What ``input`` and ``output``, or ``lengths``, say; None: something is wrong."""
    file = asked.keys.get("lengths")
    if file is not None:
        if "input" in asked.keys or "output" in asked.keys:
            asked.wrong("lengths", "input or output beside it", "one of the two ways")
            return None
        try:
            return lengths_of(str(file))
        except ConfigurationError as error:
            asked.findings.extend(error.findings)
            return None
    found = [_length(asked, name) for name in ("input", "output")]
    return None if found[0] is None or found[1] is None else Independent(found[0], found[1])


def _length(asked: Asked, name: str) -> Length | None:
    given = asked.keys.get(name)
    call = _CALL.fullmatch(str(given))
    form = call[1].casefold() if call else "fixed"
    texts = _parts(call[2]) if call else [str(given)]
    try:
        values = [float(text) for text in texts]
    except ValueError:
        values = []
    found = _made(form, values)
    if found is None:
        asked.wrong(
            name, "nothing" if given is None else repr(given), f"{_FORMS}, tokens from 1 to {MOST_TOKENS:,}"
        )
    return found


def _made(form: str, values: list[float]) -> Length | None:
    """The distribution; None: there is none of that form with these values."""
    if not values or not all(math.isfinite(value) for value in values):
        return None
    low, high = ([*values[2:], *(1, MOST_TOKENS)[len(values[2:]) :]])[:2] if len(values) <= 4 else (0, 0)  # noqa: PLR2004 - mean, sd, low, high
    match form, len(values):
        case "fixed", 1:
            ok = _is_whole(values[0])
            return Fixed(int(values[0])) if ok else None
        case "uniform", 2:
            ok = all(map(_is_whole, values)) and values[0] <= values[1]
            return Uniform(int(values[0]), int(values[1])) if ok else None
        case "normal" | "lognormal", 2 | 3 | 4:
            ok = values[0] > 0 and values[1] >= 0 and _is_whole(low) and _is_whole(high) and low <= high
            kind = Normal if form == "normal" else LogNormal
            return kind(values[0], values[1], int(low), int(high)) if ok else None
        case _:
            return None


def _is_whole(value: float) -> bool:
    return value == math.floor(value) and 1 <= value <= MOST_TOKENS
