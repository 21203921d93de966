"""Rows on elastic deployments: replicas that stay or change size are those that run, and there is room for the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from models.ids import CandidateId, PoolId
from planner.referee.index import Index
from planner.referee.physical import gpus
from planner.referee.rows import Row

__all__ = ["elastic", "moving"]


def elastic(index: Index) -> Iterator[Row]:
    """Of the replicas of an elastic candidate, those that stay and those that go are no more than there are."""
    going: dict[CandidateId, int] = defaultdict(int)
    for candidate in index.problem.candidates:
        if candidate.resize is not None:
            going[candidate.resize.of] += index.count(candidate)
    for name, count in sorted(going.items()):
        stays = index.problem.candidate.get(name)
        ready, there = (0, 0) if stays is None else (stays.current, stays.on_order)
        staying = 0 if stays is None else index.count(stays)
        yield _row(
            (name,),
            count + staying,
            there,
            "Of {allowed} replicas of " + name + " {found} stay or change size.",
        )
        yield _row(
            (name, "ready"), count, ready, "Of {allowed} ready replicas of " + name + " {found} change size."
        )


def moving(index: Index) -> Iterator[Row]:
    """While replicas change size, the accelerators of both sides are held: no more than the pool has."""
    extra: dict[PoolId, int] = defaultdict(int)
    for candidate in index.problem.candidates:
        if candidate.resize is not None:
            more = candidate.resize.moving_gpus - candidate.gpus
            extra[candidate.pool] += max(0, more) * index.count(candidate)
    for row in gpus(index):
        pool = PoolId(row.key[0])
        if extra.get(pool):
            yield replace(
                row,
                family="elastic",
                key=(pool, "moving"),
                found=row.found + extra[pool],
                say=f"Pool {pool} has {{allowed}} GPUs and changing sizes holds {{found}} meanwhile.",
                step=None,
            )


def _row(key: tuple[str, ...], found: int, allowed: int, say: str) -> Row:
    return Row(
        family="elastic", key=key, found=Fraction(found), allowed=Fraction(allowed), unit="replica", say=say
    )
