"""Whether sources of metrics answer, and have what decisions rest on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from models.controller import ControllerSettings, Extension
from models.observation import VariantObservation
from planner.clock import Clock
from planner.control.collectors import open_source
from planner.control.protocols import MetricsSource
from planner.control.running.checking_result import Area, Checked, bad, finding, good, made
from planner.control.running.opening import with_token
from planner.wording import counted

__all__ = ["checked_sources", "opened"]


def opened(extension: Extension, clock: Clock) -> MetricsSource:
    """The source that settings name, with a token that a variable may hold."""
    return open_source(extension.name, with_token(extension.name, extension.options, os.environ), clock)


def checked_sources(
    settings: ControllerSettings,
    variants: Sequence[VariantObservation],
    clock: Clock,
    *,
    open_one: Callable[[Extension, Clock], MetricsSource] = opened,
) -> Iterator[Checked]:
    """Each source of the settings: does it open, does it answer, which series are absent and why.

    Args:
        settings: of the controller.
        variants: whose engines are looked for.
        clock: for waits and times.
        open_one: opens a source.
    """
    if not settings.sources:
        yield bad(
            Area.METRICS, "sources", "no metrics source is set, so nothing is ever decided", "set sources"
        )
    for each in settings.sources:
        subject = f"source {each.name}"
        source = yield from made(Area.METRICS, subject, partial(open_one, each, clock))
        if source is not None:
            yield from _looked_at(source, subject, variants, clock)
            close = getattr(source, "close", None)
            if callable(close):
                yield from made(Area.METRICS, subject, close)


def _looked_at(
    source: MetricsSource, subject: str, variants: Sequence[VariantObservation], clock: Clock
) -> Iterator[Checked]:
    reading = yield from made(Area.METRICS, subject, partial(source.read, variants, clock.unix_s()))
    if reading is None:
        return
    look = getattr(source, "check", None)
    findings = reading.findings
    # A source that does not answer would only be waited for once more.
    if callable(look) and (reading.complete or reading.engines):
        looked = yield from made(Area.METRICS, subject, partial(look, variants))
        findings = (*(looked or ()), *findings)
    yield from (finding(Area.METRICS, each) for each in dict.fromkeys(findings))
    alive = [engine for engine in reading.engines if engine.age_s is not None]
    if alive:
        yield good(Area.METRICS, subject, f"sees {counted(len(alive), 'engine')}")
    elif not findings:
        yield bad(Area.METRICS, subject, "sees no engine", "are engines running, and scraped?")
