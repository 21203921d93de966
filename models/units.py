"""Quantities with their unit in the type; people may write the unit, the value never carries one.

Every alias accepts a plain number (already in the unit of the alias) or a text as people write it
(``"80 GiB"``, ``"2.5 $/h"``, ``"120 ms"``, ``"20 %"``) and holds a plain finite number. NaN and
infinities are refused everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationInfo

__all__ = [
    "Bytes",
    "BytesPerSecond",
    "Count",
    "EpochSeconds",
    "Flops",
    "GramsPerKwh",
    "Hours",
    "Integer",
    "Percentile",
    "PositiveCount",
    "PositiveRps",
    "PositiveSeconds",
    "Ratio",
    "Rps",
    "Seconds",
    "Share",
    "TokenCount",
    "Tokens",
    "UnknownUnitError",
    "Usd",
    "UsdPerHour",
    "Watts",
    "parse_quantity",
]

_QUANTITY: Final = re.compile(
    r"^\s*(?P<currency>\$)?\s*(?P<number>[+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>\D.*?)?\s*$"
)

_TIME_S: Final = {
    "": 1.0, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "min": 60.0, "m": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
}  # fmt: skip
_TIME_H: Final = {unit: seconds / 3600.0 for unit, seconds in _TIME_S.items() if unit} | {
    "": 1.0, "d": 24.0, "day": 24.0, "days": 24.0, "w": 168.0, "week": 168.0, "weeks": 168.0,
}  # fmt: skip
_RATE_RPS: Final = {
    unit + suffix: scale
    for unit in ("", "req", "requests", "rq", "r")
    for suffix, scale in (("/s", 1.0), ("/sec", 1.0), ("/min", 1 / 60), ("/m", 1 / 60), ("/h", 1 / 3600), ("/d", 1 / 86400))
} | {"": 1.0, "rps": 1.0, "qps": 1.0, "rpm": 1 / 60}  # fmt: skip
_POWER_W: Final = {"": 1.0, "w": 1.0, "kw": 1e3, "mw": 1e6, "watt": 1.0, "watts": 1.0}
_MONEY_RATE: Final = {
    "": 1.0, "$/h": 1.0, "$/hr": 1.0, "$/hour": 1.0, "usd/h": 1.0, "usd/hr": 1.0, "usd/hour": 1.0,
    "/h": 1.0, "/hr": 1.0, "/hour": 1.0, "$/d": 1 / 24, "$/day": 1 / 24, "usd/day": 1 / 24, "/day": 1 / 24,
    "$/month": 1 / 730, "usd/month": 1 / 730, "/month": 1 / 730, "c/h": 0.01, "¢/h": 0.01, "cents/h": 0.01,
}  # fmt: skip
_MONEY: Final = {"": 1.0, "$": 1.0, "usd": 1.0, "¢": 0.01, "cents": 0.01}
_BYTES: Final = {"": 1.0, "b": 1.0, "byte": 1.0, "bytes": 1.0} | {
    prefix + infix + "b": base**power
    for power, prefix in enumerate("kmgtp", start=1)
    for infix, base in (("", 1000.0), ("i", 1024.0))
}
_BYTE_RATE: Final = {"": 1.0} | {
    unit + per: scale for unit, scale in _BYTES.items() if unit for per in ("/s", "ps")
}
_SHARE: Final = {"": 1.0, "%": 0.01, "percent": 0.01}
_TOKENS: Final = {
    "": 1.0, "token": 1.0, "tokens": 1.0, "tok": 1.0, "k": 1e3, "k tokens": 1e3, "m": 1e6, "m tokens": 1e6,
}  # fmt: skip
_FLOPS: Final = {
    "": 1.0, "flops": 1.0, "gflops": 1e9, "tflops": 1e12, "pflops": 1e15, "flop/s": 1.0, "tflop/s": 1e12,
    "pflop/s": 1e15,
}  # fmt: skip
_CARBON: Final = {"": 1.0, "g/kwh": 1.0, "gco2/kwh": 1.0, "kg/mwh": 1.0}
_COUNTED: Final = {
    "gpus": "gpu", "replicas": "replica", "nodes": "node", "pods": "pod", "tokens": "token", "changes": "change",
    "current": "replica", "pending": "replica", "step": "replica", "saturated": "replica", "count": "node",
}  # fmt: skip
"""What a field counts, by a word of its name: the unit is in the name here too."""
_PERCENTILE: Final = {"": 1.0, "th": 1.0}
_UNITS_SHOWN: Final = 8


class UnknownUnitError(ValueError):
    """A unit that a quantity cannot have.

    Args:
        message: what was found and what is allowed.
        unit: as it was written.
        known: units that the quantity can have.
    """

    def __init__(self, message: str, *, unit: str, known: tuple[str, ...]) -> None:
        super().__init__(message)
        self.unit, self.known = unit, known


def parse_quantity(raw: object, units: Mapping[str, float]) -> object:
    """Turn a text with a unit into a number in the base unit of ``units``; pass anything else on.

    Args:
        raw: what the user wrote: a number, or a text such as ``"120 ms"``.
        units: factor to the base unit by lower-case unit; ``""`` is the base unit itself.

    Raises:
        ValueError: the text is no number; says which are.
        UnknownUnitError: its unit is not one of ``units``; says which are.
    """
    if isinstance(raw, bool):
        raise ValueError("found true or false; allowed: a number")  # noqa: TRY004 - pydantic collects ValueError only
    if not isinstance(raw, str):
        return raw
    match = _QUANTITY.match(raw)
    if match is None:
        raise ValueError(f"found {raw!r}, a number is needed; {_allowed(units)}")
    number = float(match["number"].replace("_", "").replace(",", ""))
    unit = " ".join((match["unit"] or "").lower().split())
    if match["currency"] and not unit.startswith("$"):
        unit = f"${unit}" if f"${unit}" in units else unit
        if unit not in units:
            raise UnknownUnitError(f"found {raw!r}; {_allowed(units)}", unit=unit, known=tuple(units))
    if unit not in units:
        message = f"found unit {match['unit']!r} in {raw!r}; {_allowed(units)}"
        raise UnknownUnitError(message, unit=unit, known=tuple(units))
    # An integer written as one stays one: 8192 must not become 8192.0000000001 by a factor of 1.
    return number if units[unit] == 1.0 else _tidy(number * units[unit])


def _tidy(value: float) -> float:
    """Remove the last-digit noise of a decimal factor (0.12 s, not 0.12000000000000001 s)."""
    return float(f"{value:.15g}") if math.isfinite(value) else value


def _allowed(units: Mapping[str, float]) -> str:
    names = [unit for unit in units if unit]
    more = " and more" if len(names) > _UNITS_SHOWN else ""
    return "allowed: a plain number" + (
        f" or one with {', '.join(names[:_UNITS_SHOWN])}{more}" if names else ""
    )


def _quantity(units: Mapping[str, float]) -> BeforeValidator:
    def parsed(raw: object) -> object:
        # Most quantities are numbers already, and a fleet has a hundred thousand of them.
        return raw if type(raw) is float else parse_quantity(raw, units)

    return BeforeValidator(parsed, json_schema_input_type=float | str)


def _count(raw: object, info: ValidationInfo) -> object:
    """A count may be written with what its field counts: ``"8 GPUs"`` for ``gpus``; no unit where the name says none."""
    if type(raw) is int:  # nearly every count is one, and a fleet has a hundred thousand of them
        return raw
    words = (info.field_name or "").split("_")
    noun = next((_COUNTED[word] for word in words if word in _COUNTED), None)
    return parse_quantity(raw, {"": 1.0} | ({noun: 1.0, f"{noun}s": 1.0} if noun is not None else {}))


def _whole(raw: object) -> object:
    """Anything but true and false, which Python takes for 1 and 0."""
    return parse_quantity(raw, {"": 1.0})


_COUNTS: Final = BeforeValidator(_count, json_schema_input_type=float | str)


def _unit(name: str, **bounds: Any) -> Any:  # noqa: ANN401 - pydantic's Field is untyped in its keywords
    return Field(allow_inf_nan=False, json_schema_extra={"unit": name}, **bounds)


# Upper bounds lie far above any fleet and far below where sums and products of floats lose whole units.
Seconds = Annotated[float, _quantity(_TIME_S), _unit("s", ge=0, le=1e9)]
PositiveSeconds = Annotated[float, _quantity(_TIME_S), _unit("s", gt=0, le=1e9)]
EpochSeconds = Annotated[float, _unit("s", ge=0, le=1e11)]
Hours = Annotated[float, _quantity(_TIME_H), _unit("h", gt=0, le=1e9)]
Rps = Annotated[float, _quantity(_RATE_RPS), _unit("req/s", ge=0, le=1e7)]
PositiveRps = Annotated[float, _quantity(_RATE_RPS), _unit("req/s", ge=1e-6, le=1e9)]
Watts = Annotated[float, _quantity(_POWER_W), _unit("W", ge=0, le=1e9)]
UsdPerHour = Annotated[float, _quantity(_MONEY_RATE), _unit("$/h", ge=0, le=1e9)]
Usd = Annotated[float, _quantity(_MONEY), _unit("$", ge=0, le=1e9)]
Bytes = Annotated[int, _quantity(_BYTES), Field(ge=0, json_schema_extra={"unit": "B"})]
BytesPerSecond = Annotated[float, _quantity(_BYTE_RATE), _unit("B/s", ge=0)]
Flops = Annotated[float, _quantity(_FLOPS), _unit("FLOP/s", ge=0)]
Tokens = Annotated[float, _quantity(_TOKENS), _unit("token", ge=0, le=1e15)]
Share = Annotated[float, _quantity(_SHARE), _unit("1", ge=0, le=1)]
Ratio = Annotated[float, _quantity(_SHARE), _unit("1", ge=0)]
GramsPerKwh = Annotated[float, _quantity(_CARBON), _unit("g/kWh", ge=0)]
Count = Annotated[int, _COUNTS, Field(ge=0, le=10**9, json_schema_extra={"unit": "1"})]
PositiveCount = Annotated[int, _COUNTS, Field(ge=1, le=10**14, json_schema_extra={"unit": "1"})]
TokenCount = Annotated[int, _quantity(_TOKENS), Field(ge=1, le=10**14, json_schema_extra={"unit": "token"})]
Integer = Annotated[int, BeforeValidator(_whole, json_schema_input_type=int)]
Percentile = Annotated[float, _quantity(_PERCENTILE), _unit("percentile", gt=0, lt=100)]
