"""Instances by family and size. Seeded: the same name is the same problem everywhere."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final

from models.hardware import PowerDomain, Quota
from models.problem import Candidate, Demand, PoolState, Problem
from models.saturation import Headroom
from tests.builders import a_candidate, a_demand, a_pool, a_problem

__all__ = ["INSTANCES", "POOLS", "SIZES", "Family", "Instance", "instance"]


class Family(StrEnum):
    """How much there is of what is needed."""

    AMPLE = "ample"
    TIGHT = "tight"
    SCARCE = "scarce"


@dataclass(frozen=True, slots=True)
class Hardware:
    """An accelerator type as the instances know it: price and draw of one, and its speed beside the others."""

    name: str
    usd_per_h: float
    watts: float
    speed: float


SIZES: Final = (10, 30, 100)
POOLS: Final = {10: 3, 30: 5, 100: 8}
_OF_WHAT_IS_NEEDED: Final = {Family.AMPLE: 2.0, Family.TIGHT: 0.7, Family.SCARCE: 0.4}
_HARDWARE: Final = (
    Hardware("H100", 4.0, 700.0, 1.0),
    Hardware("A100", 2.5, 400.0, 0.55),
    Hardware("L40S", 1.25, 350.0, 0.25),
    Hardware("H200", 5.0, 700.0, 1.3),
)
_PODS: Final = (1, 2, 4, 8)
_CANDIDATES: Final = 12
_NODE: Final = 8


@dataclass(frozen=True, slots=True)
class Instance:
    """One named problem."""

    family: Family
    services: int
    seed: int = 0

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return f"{self.family}-{self.services}"

    def problem(self) -> Problem:
        """Build it."""
        return instance(self.family, self.services, self.seed)


INSTANCES: Final = tuple(Instance(family, size) for size in SIZES for family in Family)


def instance(family: Family, services: int, seed: int = 0) -> Problem:
    """So many services with twelve candidates each; pools hold a stated multiple of the GPUs that serve all."""
    rng = random.Random(f"{family}/{services}/{seed}")  # noqa: S311 - instances, not secrets
    hardware = {
        f"pool-{number}": _HARDWARE[number % len(_HARDWARE)] for number in range(POOLS.get(services, 3))
    }
    demands = [_demand(rng, number) for number in range(services)]
    candidates = {demand.service: _candidates(rng, demand, hardware) for demand in demands}
    needed = sum(_gpus_needed(demand, candidates[demand.service]) for demand in demands)
    gpus = _OF_WHAT_IS_NEEDED[family] * needed
    nodes = max(1, ceil(gpus / _NODE / len(hardware)))
    pools = [_pool(name, kind, nodes) for name, kind in hardware.items()]
    draw = sum(kind.watts * nodes * _NODE for kind in hardware.values())
    return a_problem(
        demands,
        [candidate for group in candidates.values() for candidate in group],
        pools,
        name=f"{family}-{services}",
        power=(PowerDomain(id="hall", cap_w=round(0.9 * draw)),),
        quotas=(Quota(id="team-a", namespace="team-a", gpus=ceil(0.8 * gpus)),),
        allow_unserved=family is Family.SCARCE,
    )


def _demand(rng: random.Random, number: int) -> Demand:
    headroom = Headroom(relative=rng.choice((0.1, 0.2))) if rng.random() < 0.5 else Headroom()
    return a_demand(
        f"service-{number:03}",
        rps=round(rng.uniform(1, 30), 1),
        namespace=rng.choice(("team-a", "team-b")),
        priority=rng.randint(1, 3),
        headroom=headroom,
    )


def _candidates(rng: random.Random, demand: Demand, hardware: dict[str, Hardware]) -> list[Candidate]:
    base = rng.uniform(1, 4)
    smallest = rng.choice((0, 0, 1))
    offered = [(pods, pool) for pods in _PODS[smallest:] for pool in hardware]
    return [
        _candidate(demand, pods, pool, hardware[pool], base * rng.uniform(0.9, 1.1))
        for pods, pool in rng.sample(offered, min(_CANDIDATES, len(offered)))
    ]


def _candidate(demand: Demand, pods: int, pool: str, kind: Hardware, base: float) -> Candidate:
    rated = round(base * kind.speed * pods**0.9, 2)
    return a_candidate(
        demand.service,
        f"tp{pods}",
        pool,
        accelerator=kind.name,
        gpus_per_pod=pods,
        rated_rps=rated,
        surge_rps=round(rated * 1.1, 2),
        cost=kind.usd_per_h * pods,
        power_w=kind.watts * pods,
    )


def _gpus_needed(demand: Demand, candidates: list[Candidate]) -> float:
    """GPUs that serve a service alone: the fewest in each pool, and the mean of the pools."""
    fewest: dict[str, int] = {}
    for one in candidates:
        gpus = ceil(demand.arrival_rps / one.rated_rps) * one.gpus
        fewest[one.pool] = min(gpus, fewest.get(one.pool, gpus))
    return sum(fewest.values()) / len(fewest)


def _pool(name: str, kind: Hardware, nodes: int) -> PoolState:
    return a_pool(name, nodes, accelerator=kind.name, power_domain="hall")
