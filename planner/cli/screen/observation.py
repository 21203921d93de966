"""The screen of ``observe``: engines with their freshness, traffic, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.observation import (
    EngineObservation,
    Finding,
    Freshness,
    FreshnessLimits,
    Observation,
    TrafficObservation,
)
from planner.cli.screen.fleet import pools_table, quotas_table, variants_table
from planner.cli.screen.layout import Column, bullets, section, show_first, table
from planner.cli.screen.plain import LONGEST, plain
from planner.wording import counted, number, percent

__all__ = ["show_observation"]

_SHOWN: Final = 40
_STYLES: Final = {
    Freshness.FRESH: "green",
    Freshness.STALE: "yellow",
    Freshness.UNAVAILABLE: "red",
    Freshness.MISSING: "red",
}
_UNKNOWN: Final = "?"
"""Not zero: nobody said."""


def show_observation(console: Console, seen: Observation, *, every: bool = False) -> None:
    """Print an observation; the first engines alone unless ``every`` one is asked for."""
    limits = FreshnessLimits()
    states = [limits.of(engine.age_s) for engine in seen.engines]
    counts = ", ".join(f"{states.count(state)} {state}" for state in Freshness if state in states)
    whole = "" if seen.complete else "; a source did not answer in full"
    style = "bold" if seen.complete else "bold yellow"
    what = f"{len(seen.engines)} engines{f' ({counts})' if counts else ''}"
    if seen.variants or seen.pools:
        what = f"{counted(len(seen.variants), 'variant')}, {counted(len(seen.pools), 'pool')}, {what}"
    console.print(Text(f"{what}{whole}", style=style))
    most = None if every else _SHOWN
    _show_clusters(console, seen, most)
    if seen.engines:
        console.print()
        show_first(console, seen.engines, made=lambda engines: _engines(engines, states), most=most)
    if seen.traffic:
        section(console, "Traffic")
        show_first(console, seen.traffic, made=_traffic, most=most)
    if seen.findings:
        section(console, "Findings", style="bold yellow")
        bullets(console, map(_sentence, seen.findings))


def _show_clusters(console: Console, seen: Observation, most: int | None) -> None:
    if seen.variants:
        section(console, "Variants")
        show_first(console, seen.variants, made=variants_table, most=most)
    if seen.pools:
        section(console, "Accelerators")
        console.print(pools_table(seen.pools))
    if seen.quotas:
        section(console, "Quotas")
        show_first(console, seen.quotas, made=quotas_table, most=most)


def _engines(engines: Sequence[EngineObservation], states: Iterable[Freshness]) -> Table:
    made = table(
        [
            *(Column(name, right=False) for name in ("engine", "namespace", "model", "samples")),
            *(
                Column(name)
                for name in (
                    "running", "waiting", "KV", "KV tokens", "in", "out", "hits", "TTFT ms", "ITL ms", "tok/s", "req/s", "W",
                )
            ),
        ]
    )  # fmt: skip
    for engine, state in zip(engines, states, strict=False):
        made.add_row(
            plain(engine.instance),
            plain(engine.namespace or "–"),
            plain(engine.model or "–"),
            Text(_age(state, engine.age_s), style=_STYLES[state]),
            *(_figure(value) for value in (engine.running, engine.waiting)),
            _share(engine.kv_usage),
            *(_figure(value) for value in (engine.kv_tokens, engine.input_tokens, engine.output_tokens)),
            _share(engine.hit_share),
            *(_figure(value, 1e3) for value in (engine.ttft_s, engine.itl_s)),
            *(_figure(value) for value in (engine.token_rate, engine.request_rps, engine.power_w)),
        )
    return made


def _traffic(traffic: Sequence[TrafficObservation]) -> Table:
    made = table(
        [
            *(Column(name, right=False) for name in ("model", "namespace")),
            *(Column(name) for name in ("arrivals req/s", "queued", "in flight", "arrived", "completed")),
        ]
    )
    for each in traffic:
        figures = (each.arrival_rps, each.queued, each.in_flight, each.arrived, each.completed)
        made.add_row(plain(each.model), plain(each.namespace or "–"), *(_figure(value) for value in figures))
    return made


def _age(state: Freshness, age_s: float | None) -> str:
    return str(state) if age_s is None else f"{state}, {age_s:.0f} s"


def _figure(value: float | None, scale: float = 1.0) -> str:
    return _UNKNOWN if value is None else number(value * scale)


def _share(value: float | None) -> str:
    return _UNKNOWN if value is None else percent(value, 1)


def _sentence(finding: Finding) -> str:
    remedy = f" ({finding.remedy})" if finding.remedy else ""
    return plain(f"{finding.subject}: {finding.problem}{remedy}", 4 * LONGEST)
