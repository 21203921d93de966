"""Texts of columns as numbers and times: all at once where all are well formed, else one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_TOKENS", "is_date", "nanoseconds", "numbers", "seconds_of_dates"]

MOST_TOKENS: Final = 10**8
"""Tokens of a request at most, as in scenarios."""

_DATE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d+))?\s*(Z|UTC|[+-]\d\d:?\d\d)?", re.ASCII | re.IGNORECASE
)
_WHOLE: Final = len("2023-11-16 18:15:46")
_UTC: Final = ("+00:00", "Z")
_FIRST, _LAST = "1970", "2200"
"""Years whose nanoseconds fit into 64 bits with room for offsets."""

_NS: Final = 1e-9
_MINUTE_NS: Final = 60 * 10**9


def numbers(texts: Sequence[Any]) -> NDArray[np.float64]:
    """As numbers; NaN where one is none (or is infinite)."""
    values = _at_once(texts)
    if values is None:
        values = np.fromiter((_number(text) for text in texts), np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def _at_once(texts: Sequence[Any]) -> NDArray[np.float64] | None:
    """All as numbers; None: one of them is none."""
    try:
        values = np.array(texts).astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    return values if values.ndim == 1 else None


def _number(text: Any) -> float:  # noqa: ANN401 - texts of a table, values of JSON
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return float("nan")
    try:
        return float(text)
    except (ValueError, OverflowError):
        return float("nan")


def is_date(text: object) -> bool:
    """Whether a value is a time of the calendar and no number."""
    return isinstance(text, str) and _DATE.fullmatch(text.strip()) is not None


def seconds_of_dates(texts: Sequence[Any], reference_ns: int) -> NDArray[np.float64]:
    """Times as ``2023-11-16 18:15:46.6805900`` (UTC, or with an offset) in seconds from the reference; NaN: no time.

    Args:
        texts: any number of fraction digits; nine count.
        reference_ns: nanoseconds of the Unix epoch; near the times, so that none of their digits is lost.
    """
    stamps = _stamps_at_once(texts)
    if stamps is None:
        return np.fromiter((_seconds(text, reference_ns) for text in texts), np.float64)
    return np.multiply(stamps - reference_ns, _NS, dtype=np.float64)


def _stamps_at_once(texts: Sequence[Any]) -> NDArray[np.int64] | None:
    """Nanoseconds where all texts are written in one plain way; None: they must be looked at one by one."""
    try:
        zone = next((zone for zone in _UTC if texts and texts[0].endswith(zone)), "")
        plain = [text.removesuffix(zone).replace("T", " ") for text in texts]
        if not all(_is_plain(text) for text in plain):
            return None
        return np.array(plain, dtype="datetime64[ns]").astype(np.int64)
    except (ValueError, AttributeError, TypeError):
        return None


def _is_plain(text: str) -> bool:
    # numpy takes a date without a time too.
    fraction = text[_WHOLE:]
    return (
        len(text) >= _WHOLE
        and text[4] == "-"
        and _FIRST <= text[:4] < _LAST
        and (not fraction or (fraction[0] == "." and fraction[1:].isdecimal()))
    )


def _seconds(text: Any, reference_ns: int) -> float:  # noqa: ANN401 - texts of a table, values of JSON
    stamp = nanoseconds(text)
    return float("nan") if stamp is None else (stamp - reference_ns) * _NS


def nanoseconds(text: object) -> int | None:
    """A time of the calendar in nanoseconds of the Unix epoch; None: it is none."""
    found = _DATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        return None
    date, time, fraction, zone = found.groups()
    if not _FIRST <= date[:4] < _LAST:
        return None
    try:
        stamp = int(np.datetime64(f"{date}T{time}", "ns").astype(np.int64))
    except ValueError:
        return None
    stamp += int((fraction or "0")[:9].ljust(9, "0"))
    if zone and zone.upper() not in {"Z", "UTC"}:
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        stamp -= (1 if zone[0] == "+" else -1) * (hours * 60 + minutes) * _MINUTE_NS
    return stamp
