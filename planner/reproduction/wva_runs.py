"""Runs of the cluster experiments: a policy at a rate with a seed, and what is read off it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from models.simulation import Outcome
from planner.reproduction.wva_setup import (
    HPA,
    OURS,
    POLICIES,
    RATES_RPS,
    VARIANT,
    WVA,
    Cluster,
    cluster_traffic,
)
from planner.simulation.experiment import Experiment, run_experiment
from planner.simulation.result import itl_s

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.simulation.result import Result

__all__ = ["Runs", "Seen", "cluster_runs", "run_policy"]

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One run, over the requests and the time that are measured.

    Attributes:
        arrived: requests.
        outcomes: how many ended how; their sum is ``arrived``.
        goodput_rps: requests done, per second of the traffic.
        failed: share of the requests that were not done.
        replicas: mean number there were: starting, ready, draining.
        replica_h: hours of them.
        ttft_s: mean, of requests that had a first token.
        itl_s: mean over requests done of each one's mean.
        aborts: replicas that were ended while they served.
        watts: mean draw by the board power of what was there.
    """

    arrived: int
    outcomes: Mapping[Outcome, int]
    goodput_rps: float
    failed: float
    replicas: float
    replica_h: float
    ttft_s: float
    itl_s: float
    aborts: int
    watts: float

    def share(self, *outcomes: Outcome) -> float:
        """Share of the requests that ended so."""
        return sum(self.outcomes.get(outcome, 0) for outcome in outcomes) / max(1, self.arrived)


def run_policy(policy: str, rate_rps: float, *, seed: int, cluster: Cluster) -> Seen:
    """Traffic at one rate against one policy, until every request has ended."""
    fleet = cluster.fleet_for(policy, max(1, round(rate_rps)))
    traffic = cluster_traffic(rate_rps, cluster.warm_s + cluster.measured_s, seed=seed)
    experiment = Experiment(fleet, seed=seed, scrape_interval_s=cluster.scrape_s, metric_lag_s=cluster.lag_s)
    return _read(run_experiment(experiment, traffic, [POLICIES[policy](cluster, fleet)]), cluster)


def _read(result: Result, cluster: Cluster) -> Seen:
    result.check_conservation()
    rows = {
        name: column[result.requests["arrival_s"] >= cluster.warm_s]
        for name, column in result.requests.items()
    }
    arrived, done = len(rows["request"]), rows["outcome"] == Outcome.DONE
    ends_s = result.time["time_s"]
    inside = (ends_s > cluster.warm_s) & (ends_s <= cluster.warm_s + cluster.measured_s)
    there = result.there(VARIANT)[inside]
    aborted = rows["replica"][rows["outcome"] == Outcome.ABORTED]
    ttft_s: NDArray[np.float64] = rows["first_token_s"] - rows["arrival_s"]
    return Seen(
        arrived=arrived,
        outcomes={outcome: int(np.sum(rows["outcome"] == outcome)) for outcome in Outcome},
        goodput_rps=float(np.sum(done)) / cluster.measured_s,
        failed=1.0 - float(np.mean(done)),
        replicas=float(np.mean(there)),
        replica_h=float(np.mean(there)) * cluster.measured_s / _HOUR_S,
        ttft_s=float(np.nanmean(ttft_s)),
        itl_s=float(np.mean(itl_s(rows)[done & (rows["output_tokens"] > 1)])),
        aborts=len(np.unique(aborted)),
        watts=float(np.mean(result.variants[VARIANT]["power_w"][inside])),
    )


Runs = Mapping[tuple[str, float], Sequence[Seen]]
"""Runs of each policy at each rate, one per seed; equal seeds have equal traffic under every policy."""


@lru_cache(maxsize=32)
def cluster_runs(
    seeds: int,
    cluster: Cluster = Cluster(),  # noqa: B008 - frozen
    *,
    policies: tuple[str, ...] = (HPA, WVA, OURS),
    rates_rps: tuple[float, ...] = RATES_RPS,
) -> Runs:
    """All runs; those of figures 4, 5, 6 and of the replicas are the same ones, so they are kept."""
    return {
        (policy, rate): [run_policy(policy, rate, seed=seed, cluster=cluster) for seed in range(seeds)]
        for rate in rates_rps
        for policy in policies
    }
