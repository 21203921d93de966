"""Elastic deployments: a replica stays as it is, or goes one way to another size; what moves needs room meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from models.ids import CandidateId, PoolId
from models.problem import Candidate
from planner.optimization.formulation.index import Index, replicas
from planner.optimization.formulation.physical import held_terms
from planner.optimization.program import Row

__all__ = ["elastic_rows", "moving_rows"]


def elastic_rows(index: Index) -> Iterator[Row]:
    """n[c] + Σ_w n[w] ≤ on order[c]  and  Σ_w n[w] ≤ ready[c]  over the ways w of the replicas of candidate c."""
    for name, ways in _ways(index).items():
        stays = index.problem.candidate[name]
        going = {replicas(way): 1 for way in ways}
        yield Row(("elastic", name), {replicas(stays): 1} | going, upper=stays.on_order)
        if stays.pending:
            yield Row(("elastic", name, "ready"), going, upper=stays.current)


def moving_rows(index: Index) -> Iterator[Row]:
    """Σ_c g[c]·n[c] + Σ_w (moving g[w] − g[w])·n[w] ≤ accelerators of the pool, while replicas are on their ways."""
    moving: dict[PoolId, list[tuple[Candidate, int]]] = defaultdict(list)
    for way in index.problem.candidates:
        if way.resize is not None and way.resize.moving_gpus > way.gpus:
            moving[way.pool].append((way, way.resize.moving_gpus - way.gpus))
    for pool in index.problem.pools:
        extras = moving.get(pool.id)
        if not extras or not index.bounded(pool):
            continue
        terms, usable = held_terms(index, pool)
        for way, extra in extras:
            terms[replicas(way)] += extra
        yield Row(("elastic", pool.id, "moving"), terms, upper=usable)


def _ways(index: Index) -> dict[CandidateId, list[Candidate]]:
    """Ways by the candidate whose replicas can go them."""
    found: dict[CandidateId, list[Candidate]] = defaultdict(list)
    for candidate in index.problem.candidates:
        if candidate.resize is not None:
            found[candidate.resize.of].append(candidate)
    return found
