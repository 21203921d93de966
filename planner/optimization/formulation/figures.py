"""Figures of all candidates as arrays: what is asked of every candidate of a fleet is asked once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.problem import Problem
from planner.optimization.program import Key

__all__ = ["Figures", "figures_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Figures(NamedTuple):
    """One entry per candidate, in the order of the problem.

    Attributes:
        keys: its column of replicas.
        demand: position of its demand.
        pool: position of its pool.
        gpus: accelerators of one replica.
        on_order: replicas that will be there if nothing is done.
        min_replicas: replicas at least.
        rated_rps: up to the trigger, req/s.
        surge_rps: up to tau, req/s.
        unrated: whether it serves nothing.
    """

    keys: Sequence[Key]
    demand: Ints
    pool: Ints
    gpus: Ints
    on_order: Ints
    min_replicas: Ints
    rated_rps: Floats
    surge_rps: Floats
    unrated: NDArray[np.bool_]


def figures_of(problem: Problem, keys: Sequence[Key]) -> Figures:
    """The figures of a problem whose columns of replicas are ``keys``."""
    demand = {each.service: number for number, each in enumerate(problem.demands)}
    pool = {each.id: number for number, each in enumerate(problem.pools)}
    whole = np.array(
        [
            (
                demand[c.service],
                pool[c.pool],
                c.pods_per_replica * c.gpus_per_pod,
                c.current + c.pending,
                c.min_replicas,
                c.unrated,
            )
            for c in problem.candidates
        ],
        dtype=np.int64,
    ).reshape(-1, 6)
    rates = np.array([(c.rated_rps, c.surge_rps) for c in problem.candidates], dtype=np.float64)
    rated, surge = rates.reshape(-1, 2).T
    demands, pools, gpus, on_order, least, unrated = whole.T
    return Figures(keys, demands, pools, gpus, on_order, least, rated, surge, unrated.astype(bool))
