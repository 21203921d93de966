"""What runs must fit where it runs: more accelerators than a pool has cannot be in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from models.fleet import RunningVariant
from models.hardware import Pool
from models.ids import PoolId
from models.scenario import Mode, Scenario
from planner.scenario.tree import ANY, Complaints, Entry, below

__all__ = ["check_running_fits"]


def check_running_fits(scenario: Scenario, document: Entry, complaints: Complaints) -> None:
    """Complain about pools that hold fewer accelerators than their ready replicas need.

    A pool with a node that is cordoned, tainted or not ready is left alone: what is said to run there may be on its
    way out. So is everything where the accelerators that exist are no bound.

    Args:
        scenario: valid.
        document: that it was made of, written out.
        complaints: takes one finding for each pool, at the first variant that does not fit any more.
    """
    if scenario.mode is Mode.UNCONSTRAINED:
        return
    entries = list(below(document, "fleet", "running", ANY))
    running = list(zip(scenario.fleet.running, entries, strict=True))
    gpus = {
        (service.id, variant.id): variant.parallelism.gpus
        for service in scenario.services
        for variant in service.variants
    }
    for pool in filter(_is_whole, scenario.pools):
        held = [
            (gpus.get((one.service, one.variant), 0) * one.replicas, entry)
            for one, entry in _inside(running, pool.id)
        ]
        _check_pool(pool, held, complaints)


def _inside(
    running: Iterable[tuple[RunningVariant, Entry]], pool: PoolId
) -> Iterator[tuple[RunningVariant, Entry]]:
    return ((one, entry) for one, entry in running if one.pool == pool)


def _is_whole(pool: Pool) -> bool:
    return all(node.ready and not node.cordoned and not node.tainted for node in pool.nodes)


def _check_pool(pool: Pool, held: Iterable[tuple[int, Entry]], complaints: Complaints) -> None:
    there = sum(node.count * (node.gpus - node.foreign_gpus) for node in pool.nodes)
    total, first = 0, None
    for gpus, entry in held:
        total += gpus
        first = entry if first is None and total > there else first
    if first is not None:
        complaints.about(
            first,
            f"replicas that hold {total} GPUs in pool {pool.id}",
            allowed=f"at most {there}, which its nodes have beside what foreign pods use",
        )
