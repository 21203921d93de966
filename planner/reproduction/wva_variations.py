"""What becomes of the comparison where settings that nobody states are others, and above what the cap can carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from models.reproduction import Table
from planner.reproduction.intervals import mean_of
from planner.reproduction.wva_runs import cluster_runs
from planner.reproduction.wva_setup import HPA, OURS, OURS_REFUSING, WVA, WVA_HELD, Cluster

__all__ = ["VARIATIONS", "beyond_the_cap", "what_if", "whose_doing"]

_RATE_RPS: Final = 5.0
_BEYOND_RPS: Final = 7.5

VARIATIONS: Final[Mapping[str, Cluster]] = {
    "as in all figures": Cluster(),
    "HPA waits 300 s before it shrinks": Cluster(down_window_s=300.0),
    "HPA waits 60 s before it shrinks": Cluster(down_window_s=60.0),
    "removed replicas may finish for 30 s": Cluster(grace_s=30.0),
    "HPA reads figures of now": Cluster(hpa_maxima=False),
    "start-up 60 s": Cluster(startup_s=60.0),
    "start-up 120 s": Cluster(startup_s=120.0),
    "metrics 30 s old": Cluster(lag_s=30.0),
    "WVA decides every 15 s": Cluster(interval_s=15.0),
    "half the KV cache": Cluster(kv_blocks=25_000),
}
"""Settings by what is other about them."""


def what_if(seeds: int) -> Table:
    """Failures at 5 req/s under each variation."""
    rows = []
    for name, cluster in VARIATIONS.items():
        runs = cluster_runs(seeds, cluster, policies=(WVA, HPA), rates_rps=(_RATE_RPS,))
        wva, hpa = runs[WVA, _RATE_RPS], runs[HPA, _RATE_RPS]
        rows.append(
            (
                name,
                mean_of(wva, "failed").text(1, scale=100),
                mean_of(hpa, "failed").text(1, scale=100),
                mean_of(wva, "replicas").text(1),
                mean_of(hpa, "replicas").text(1),
            )
        )
    head = ("at 5 req/s", "WVA failed, %", "HPA failed, %", "WVA replicas", "HPA replicas")
    return Table(title="How far it hangs on what nobody states", head=head, rows=tuple(rows))


def whose_doing(seeds: int) -> Table:
    """Counts of one policy behind the router of the other."""
    policies, rates = (WVA, WVA_HELD, OURS_REFUSING, OURS), (2.0, _RATE_RPS, 6.0)
    exchanged = cluster_runs(seeds, policies=(WVA_HELD, OURS_REFUSING), rates_rps=rates)
    runs = {**cluster_runs(seeds), **exchanged}
    rows = tuple(
        (
            policy,
            *(
                text
                for rate in rates
                for text in (
                    mean_of(runs[policy, rate], "failed").text(1, scale=100),
                    mean_of(runs[policy, rate], "replicas").text(1),
                )
            ),
        )
        for policy in policies
    )
    head = ("", *(f"{rate:g} req/s: {what}" for rate in rates for what in ("failed, %", "replicas")))
    return Table(title="What comes of counts, and what of admission", head=head, rows=rows)


def beyond_the_cap(seeds: int) -> Table:
    """More than ten replicas carry, so that both fleets stay at the cap."""
    rows = []
    runs = cluster_runs(
        seeds, replace(Cluster(), warm_s=600.0), policies=(WVA, HPA, OURS), rates_rps=(_BEYOND_RPS,)
    )
    for policy in (WVA, HPA, OURS):
        each = runs[policy, _BEYOND_RPS]
        rows.append(
            (
                policy,
                mean_of(each, "goodput_rps").text(2),
                mean_of(each, "failed").text(1, scale=100),
                mean_of(each, "replicas").text(2),
                mean_of(each, "ttft_s").text(1),
            )
        )
    head = (f"at {_BEYOND_RPS:g} req/s", "served, req/s", "failed, %", "replicas", "TTFT, s")
    return Table(title="Beyond what the cap can carry", head=head, rows=tuple(rows))
