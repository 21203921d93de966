"""Change windows and freezes: at which hours what may be changed, in the time zones that people write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from models.controller import ControllerSettings
from models.observation import VariantObservation
from models.people import ChangeWindow, Forbids, Weekday
from planner.errors import nearest

__all__ = ["Hours", "hours_of", "is_open", "unknown_zone", "zone_of"]

_DAYS = tuple(Weekday)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """What the hour permits.

    Attributes:
        forbids: what is not done now; None: everything may be.
        frozen: by a freeze; otherwise since it is outside of all windows.
        message: which hours.
    """

    forbids: Forbids | None = None
    frozen: bool = False
    message: str = ""


def hours_of(variant: VariantObservation, settings: ControllerSettings, now_s: float) -> Hours:
    """What may be changed of a variant at this hour; a freeze goes before a window.

    Args:
        variant: that is to change.
        settings: with windows and freezes.
        now_s: seconds of the epoch.
    """
    frozen = [each for each in _of(variant, settings.freezes) if is_open(each, now_s)]
    windows = _of(variant, settings.change_windows)
    closed = [] if any(is_open(each, now_s) for each in windows) else windows
    found = [(each, True) for each in frozen] + [(each, False) for each in closed]
    if not found:
        return Hours()
    strict, is_freeze = next((one for one in found if one[0].forbids is Forbids.ALL), found[0])
    words = "inside of the freeze" if is_freeze else "outside of the change windows, one of which is"
    return Hours(forbids=strict.forbids, frozen=is_freeze, message=f"{words} {_written(strict)}")


def is_open(window: ChangeWindow, now_s: float) -> bool:
    """Whether a window is open; one that ends before it begins belongs to the day on which it begins.

    Args:
        window: as people wrote it.
        now_s: seconds of the epoch.
    """
    local = datetime.fromtimestamp(now_s, zone_of(window.zone))
    clock, today = local.strftime("%H:%M"), local.date()
    if window.begin < window.end:
        return window.begin <= clock < window.end and _begins(window, today)
    if clock >= window.begin and _begins(window, today):
        return True
    return clock < window.end and _begins(window, today - timedelta(days=1))


def unknown_zone(name: str) -> str | None:
    """What is wrong with a time zone; None: nothing."""
    try:
        zone_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
        if not known:
            return "no time zones are installed here: UTC works, and the package tzdata brings the others"
        close = nearest(name, known)
        return "no such time zone" + (f"; did you mean {close!r}?" if close else "")
    return None


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """A time zone by name; UTC is known without any data."""
    return UTC if name.upper() in {"UTC", "ETC/UTC", "Z"} else ZoneInfo(name)


def _of(variant: VariantObservation, windows: Iterable[ChangeWindow]) -> list[ChangeWindow]:
    return [each for each in windows if each.who.covers(variant)]


def _begins(window: ChangeWindow, day: date) -> bool:
    on_day = not window.days or _DAYS[day.weekday()] in window.days
    return on_day and (window.since or day) <= day <= (window.until or day)


def _written(window: ChangeWindow) -> str:
    days = ",".join(window.days) or "every day"
    dates = " ".join(
        part
        for part in (
            f"from {window.since}" if window.since else "",
            f"to {window.until}" if window.until else "",
        )
        if part
    )
    return " ".join(part for part in (days, f"{window.begin}-{window.end}", window.zone, dates) if part)
