"""Figures for the eye: rounded, grouped in thousands, with their unit. Never used for arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

__all__ = [
    "gpu_label",
    "money",
    "now_and_planned",
    "number",
    "number_up",
    "percent",
    "quantity",
    "quantity_up",
    "used_of",
]

UNKNOWN: Final = "?"

_KILO: Final = {"W": ("kW", 1e3), "B": ("GiB", 2.0**30), "B/s": ("GB/s", 1e9), "FLOP/s": ("TFLOP/s", 1e12)}
_KILO_FROM: Final = 1e4
_COUNTED: Final = {"GPU", "node", "replica", "change", "pod", "move", "token", "point"}
_SHARES: Final = {"share", "%"}


def number(value: float | None, digits: int = 4) -> str:
    """A number of so many significant digits, thousands grouped, no exponent; ``?`` for an unknown one."""
    return _rounded(value, digits, _nearest)


def number_up(value: float | None, digits: int = 4) -> str:
    """As :func:`number`, rounded up: for a limit that must suffice when somebody types it in."""
    return _rounded(value, digits, _ceiling)


def percent(share: float | None, digits: int = 2) -> str:
    """A share (1 = all) in percent: ``0.123`` is ``12 %``; a share that is not 0 never reads ``0 %``."""
    if share is None:
        return UNKNOWN
    if 0 < abs(share) < 5e-5:  # noqa: PLR2004 - below it two decimals of a percent say 0
        return "< 0.01 %"
    return f"{number(share * 100, max(digits, 3 if abs(share) >= 1 else digits))} %"


def money(value: float | None) -> str:
    """An amount with two decimals; more where it is small, none where it is large."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    if size >= 1e5:  # noqa: PLR2004 - cents of a hundred thousand are noise
        return f"{value:,.0f}"
    return f"{value:,.2f}" if size >= 0.1 or size == 0 else number(value, 2)  # noqa: PLR2004 - as above


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit; large powers and sizes in the larger unit: ``46.2 kW``."""
    return _with_unit(value, unit, number)


def quantity_up(value: float | None, unit: str) -> str:
    """As :func:`quantity`, rounded up."""
    return _with_unit(value, unit, number_up)


def used_of(used: float, limit: float, unit: str) -> str:
    """Use of a limit, the unit once where it is the same: ``39.8 of 40 kW``."""
    first, last = quantity(used, unit), quantity(limit, unit)
    suffix = last.lstrip("-0123456789.,")
    return f"{first.removesuffix(suffix) if suffix.strip() else first} of {last}"


def gpu_label(replicas: int, parallelism: str) -> str:
    """Replicas times the layout of one: ``5 × TP8``; a dash where there is none."""
    return f"{replicas} × {parallelism}" if replicas else "–"


def now_and_planned(current: int, pending: int, planned: int) -> str:
    """``3 → 5``; with pending replicas ``3+1 → 5``; an unchanged count stands alone."""
    now = f"{current}+{pending}" if pending else str(current)
    return now if now == str(planned) else f"{now} → {planned}"


def _with_unit(value: float | None, unit: str, write: Callable[[float | None], str]) -> str:
    if value is None or unit in {"", "1"}:
        return write(value)
    if unit in _SHARES:
        return percent(value)
    if unit.removesuffix("s") in _COUNTED:
        return f"{write(value)} {unit.removesuffix('s')}{'' if value == 1 else 's'}"
    if value == 1 and unit.startswith("pods of "):
        return f"1 {unit.replace('pods', 'pod', 1)}"
    if unit in _KILO and abs(value) >= _KILO_FROM:
        larger, scale = _KILO[unit]
        return f"{write(value / scale)} {larger}"
    return f"{write(value)} {unit}"


def _rounded(value: float | None, digits: int, rounding: Callable[[float, int], float]) -> str:
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{rounding(value, decimals):,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _nearest(value: float, decimals: int) -> float:
    return round(value, decimals)


def _ceiling(value: float, decimals: int) -> float:
    # A hair below the grid point counts as on it: 46.2 must not become 46.21 by binary noise.
    return math.ceil(value * 10.0**decimals - 1e-6) / 10.0**decimals
