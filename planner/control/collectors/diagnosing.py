"""Why an expected series is not there: renamed, relabelled, wrong port, OpenMetrics. Findings for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from models.observation import Finding
from planner.control.collectors.exposition import Page
from planner.control.collectors.names import (
    ENGINE_MEASURES,
    ENGINE_PREFIXES,
    POWER,
    ROUTER_MEASURES,
    ROUTER_PREFIXES,
    Measure,
    engine_of,
    plain,
    spellings,
)
from planner.errors import nearest

__all__ = ["about_names", "about_page", "absent_series", "kinds_of"]

_V0: Final = frozenset({"vllm:gpu_cache_usage_perc", "vllm:gpu_prefix_cache_hit_rate"})
_SHOWN: Final = 5
_SUFFIXES: Final = ("_bucket", "_sum", "_count", "_total", "_created")


def _bare(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


_KNOWN: Final = frozenset(
    _bare(spelled)
    for measure in (*ENGINE_MEASURES, *ROUTER_MEASURES)
    for way in measure.ways
    for name in way.series
    for spelled in spellings(name)
)
"""Series that say something else are no new names of a missing one."""


def kinds_of(names: Iterable[str]) -> frozenset[str]:
    """What a set of names is of: ``vllm``, ``sglang``, ``router``, ``accelerators``."""
    kinds = set()
    for name in names:
        if engine_of(name):
            kinds.add(engine_of(name))
        elif name.startswith(ROUTER_PREFIXES):
            kinds.add("router")
        elif name == POWER.ways[0].series[0]:
            kinds.add("accelerators")
    return frozenset(kinds)


def absent_series(kind: str, names: Collection[str], *, where: str) -> tuple[Finding, ...]:
    """A finding for each value that no series of ``names`` gives, with the likeliest reason.

    Args:
        kind: ``vllm``, ``sglang`` or ``router``.
        names: every name that is there.
        where: the place that was looked at, as a phrase: ``on the page of 10.0.0.1:8000``.
    """
    known = {plain(name) for name in names}
    ours = sorted(name for name in names if engine_of(name) == kind or (kind == "router" and name.startswith(ROUTER_PREFIXES)))  # fmt: skip
    return tuple(
        finding
        for measure in (ROUTER_MEASURES if kind == "router" else ENGINE_MEASURES)
        if measure.needed and measure.field != "waiting_now"
        if (finding := _absent(measure, kind, (known, ours), where)) is not None
    )


def _absent(
    measure: Measure, kind: str, names: tuple[Collection[str], Collection[str]], where: str
) -> Finding | None:
    known, ours = names
    wanted = [way.series for way in measure.ways if kind == "router" or engine_of(way.series[0]) == kind]
    if not wanted or any(all(plain(name) in known for name in series) for series in wanted):
        return None
    missing = [name for name in wanted[0] if plain(name) not in known]
    close = nearest(_bare(missing[0]), {_bare(name) for name in ours} - _KNOWN)
    return Finding(
        subject=missing[0],
        problem=f"not {where}, so {measure.field} is unknown",
        remedy=_reason(measure, missing[0], close),
    )


def _reason(measure: Measure, name: str, close: str | None) -> str:
    if measure.field == "queued":
        return "flow control is off in the endpoint picker (feature gate flowControl), so nothing is queued there"
    if measure.field in {"input_tokens", "output_tokens"} and name.startswith("sglang"):
        return "start the engine with --collect-tokens-histogram"
    if close is not None:
        return f"likely renamed: there is {close!r}"
    return "dropped by a metric relabelling rule, or a version of the engine that does not offer it"


def about_names(names: Collection[str], *, where: str) -> tuple[Finding, ...]:
    """What is odd about the names of series though they are read."""
    told = []
    plained = sorted(name for name in names if engine_of(name) and ":" not in name)
    if plained:
        told.append(
            Finding(
                subject=plained[0],
                problem=f"series {where} are stored with an underscore in place of the colon",
                remedy="scraped as OpenMetrics; read here all the same, but queries and dashboards of others find nothing: "
                "let the engine answer with text format 0.0.4, or set scrape_protocols: [PrometheusText0.0.4]",
            )
        )
    old = sorted(_V0 & set(names))
    if old:
        told.append(
            Finding(
                subject=old[0],
                problem=f"names of vLLM V0 {where}",
                remedy="read here all the same; later versions renamed them",
            )
        )
    return tuple(told)


def about_page(origin: str, page: Page) -> tuple[Finding, ...]:
    """What is odd about a page."""
    where = f"on the page of {origin}"
    told = []
    if not page.names:
        told.append(_about(origin, "it is no metrics page", "another port or path, or a web page"))
    elif not kinds_of(page.names):
        shown = ", ".join(sorted(page.names)[:_SHOWN])
        told.append(
            _about(
                origin,
                f"no series of {', '.join(ENGINE_PREFIXES)}, a router or accelerators; there are {shown}",
                "the port of another process (a sidecar, a proxy), or an engine started with its metrics off "
                "(vLLM: --disable-log-stats; SGLang: without --enable-metrics)",
            )
        )
    for count, what, why in (
        (page.malformed, "no samples", "a page that was cut off, or a broken exporter"),
        (page.repeated, "repeated series, of which the first counts", "two exporters joined into one page"),
        (page.beyond, "beyond the limits of a page", "label values without end, e.g. one for each user"),
    ):
        if count:
            told.append(_about(origin, f"{count} lines are {what}", why))
    for kind in sorted(kinds_of(page.names) & {*ENGINE_PREFIXES}):
        told += absent_series(kind, page.names, where=where)
    return (*told, *about_names(page.names, where=where))


def _about(origin: str, problem: str, remedy: str) -> Finding:
    return Finding(subject=f"page of {origin}", problem=problem, remedy=remedy)
