"""Instances by family and size. Seeded: the same name is the same problem everywhere."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from models.problem import Demand, Problem
from tests.benchmarks import families
from tests.benchmarks.offers import figures
from tests.benchmarks.one_service import one_service

__all__ = ["INSTANCES", "ONE_SERVICE_SIZES", "SIZES", "Family", "Instance", "drifted", "instance"]


class Family(StrEnum):
    """What is scarce, or special, in the instances of a family."""

    AMPLE = "ample"
    TIGHT = "tight"
    SCARCE_65 = "scarce-65"
    SCARCE_45 = "scarce-45"
    POOLS_30 = "pools-30"
    PLACEMENT = "placement"
    QUOTA = "quota"
    POWER = "power"
    BUCKETS = "buckets"
    PREFILL_DECODE = "prefill-decode"
    ONE_SERVICE_60 = "one-service-60"
    ONE_SERVICE_960 = "one-service-960"


SIZES: Final = (20, 100, 1_000, 10_000)
"""Services of a fleet."""

ONE_SERVICE_SIZES: Final = (4, 8, 16, 32)
"""GPU types of a one-service instance."""

_BUILDERS: Final[dict[Family, Callable[[int, int], Problem]]] = {
    Family.AMPLE: families.ample,
    Family.TIGHT: families.tight,
    Family.SCARCE_65: families.scarce_65,
    Family.SCARCE_45: families.scarce_45,
    Family.POOLS_30: families.pools_30,
    Family.PLACEMENT: families.placement,
    Family.QUOTA: families.quota,
    Family.POWER: families.power,
    Family.BUCKETS: families.buckets,
    Family.PREFILL_DECODE: families.prefill_decode,
    Family.ONE_SERVICE_60: lambda types, seed: one_service(60, types, seed),
    Family.ONE_SERVICE_960: lambda types, seed: one_service(960, types, seed),
}


@dataclass(frozen=True, slots=True)
class Instance:
    """One named problem: ``size`` is the number of services, or of GPU types where there is one service."""

    family: Family
    size: int
    seed: int = 0

    @property
    def name(self) -> str:
        """As it stands in tables; the seed only where it is not 0."""
        return f"{self.family}-{self.size}" + (f"#{self.seed}" if self.seed else "")

    @property
    def one_service(self) -> bool:
        """Whether it is one service on many GPU types."""
        return self.family in (Family.ONE_SERVICE_60, Family.ONE_SERVICE_960)

    def problem(self) -> Problem:
        """Build it."""
        return instance(self.family, self.size, self.seed)


INSTANCES: Final = tuple(
    one
    for family in Family
    for size in (*SIZES, *ONE_SERVICE_SIZES)
    if (one := Instance(family, size)).one_service is (size in ONE_SERVICE_SIZES)
)
"""All families in all their sizes."""


def instance(family: Family, size: int, seed: int = 0) -> Problem:
    """The problem of that name."""
    return _BUILDERS[family](size, seed)


def drifted(problem: Problem, seed: int = 0, by: float = 0.02) -> Problem:
    """The next cycle: every demand is up to so much more or less, all else is as it was."""
    rng = random.Random(f"drift/{problem.name}/{seed}")  # noqa: S311 - instances, not secrets
    return problem.but(
        demands=tuple(_drifted(demand, rng.uniform(1 - by, 1 + by)) for demand in problem.demands)
    )


def _drifted(demand: Demand, factor: float) -> Demand:
    buckets = tuple(
        bucket.model_copy(update={"arrival_rps": figures(bucket.arrival_rps * factor, 6)})
        for bucket in demand.buckets
    )
    return demand.model_copy(update={"buckets": buckets})
