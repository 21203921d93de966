"""Mélange's slicing formulation (arXiv 2404.14527, section 5), written anew from its description, with CBC through PuLP.

Every bucket is cut into equal slices, and each slice goes to one GPU type as a whole: binaries x[i, j], integers y[j],
min Σ y[j]·cost[j], Σ_j x[i, j] = 1, Σ_i x[i, j]·rate_i / throughput[j, bucket of i] ≤ y[j]. More slices come nearer to
the optimum over continuous shares and take longer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pulp

from models.problem import Problem
from planner.optimization.backends.pulp import _cbc

__all__ = ["SLICES", "Sliced", "by_slices"]

SLICES: Final = 8
"""Slices per bucket, as published."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """The answer: GPUs by candidate, their cost, whether it is proven, and the wall time with and without formulating."""

    counts: Mapping[str, int]
    cost: float | None
    proven: bool
    formulate_s: float
    solve_s: float


def by_slices(problem: Problem, *, seconds: float, gap: float = 1e-4, slices: int = SLICES) -> Sliced:
    """Plan a problem of one service that is routed by length."""
    start = time.perf_counter()
    (demand,) = problem.demands
    program = pulp.LpProblem("slices", pulp.LpMinimize)
    gpus = {
        c.id: program.add_variable(f"y{n}", 0, None, pulp.LpInteger) for n, c in enumerate(problem.candidates)
    }
    program += pulp.lpSum(c.cost * gpus[c.id] for c in problem.candidates)
    loads: dict[str, list[pulp.LpAffineExpression]] = {c.id: [] for c in problem.candidates}
    for b, bucket in enumerate(demand.buckets):
        able = [(n, c) for n, c in enumerate(problem.candidates) if bucket.id in c.by_bucket]
        for number in range(slices):
            choice = {c.id: program.add_variable(f"x{b}_{number}_{n}", 0, 1, pulp.LpInteger) for n, c in able}
            program += pulp.lpSum(choice.values()) == 1
            for _, c in able:
                load = bucket.arrival_rps / slices / c.by_bucket[bucket.id].rated_rps
                loads[c.id].append(load * choice[c.id])
    for candidate, load in loads.items():
        program += pulp.lpSum(load) <= gpus[candidate]
    formulated = time.perf_counter()
    proven, found = _solved(program, seconds=seconds, gap=gap)
    counts = {key: round(y.varValue or 0) for key, y in gpus.items()} if found else {}
    return Sliced(
        counts=counts,
        cost=sum(c.cost * counts[c.id] for c in problem.candidates) if found else None,
        proven=proven,
        formulate_s=formulated - start,
        solve_s=time.perf_counter() - formulated,
    )


def _solved(program: pulp.LpProblem, *, seconds: float, gap: float) -> tuple[bool, bool]:
    """Whether it is proven, and whether there is a plan: by CBC's own words, since PuLP calls a cut run optimal."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "cbc.log"
        solver = pulp.COIN_CMD(path=_cbc(), msg=False, timeLimit=seconds, gapRel=gap, logPath=str(log))
        solver.tmpDir = folder
        program.solve(solver)
        text = log.read_text(errors="replace").lower()
    optimal = "result - optimal solution found" in text
    cut = "stopped on time" in text
    return optimal and not cut, "objective value:" in text
