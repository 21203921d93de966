"""One LLM, many request shapes, many GPU types and no budgets: what Mélange plans (arXiv 2404.14527)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from math import exp, log
from typing import Final

from models.problem import BucketRating, Candidate, Demand, DemandBucket, PoolState, Problem, candidate_id
from models.scenario import Mode
from models.workload import Routing
from tests.benchmarks.market import KINDS, Kind
from tests.benchmarks.offers import figures

__all__ = ["GRIDS", "one_service"]

_INPUTS: Final = (25, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 12_000, 16_000)
_OUTPUTS: Final = (25, 100, 250, 500, 1_000, 2_000)

GRIDS: Final = {
    60: (_INPUTS, _OUTPUTS),
    960: (
        tuple(round(25 * 640 ** (n / 31)) for n in range(32)),
        tuple(round(25 * 80 ** (n / 29)) for n in range(30)),
    ),
}
"""Input and output lengths by the number of buckets: 60 as published, 960 on a finer grid over the same range."""

_RPS: Final = {60: 32.0, 960: 512.0}
_TOKENS_PER_S: Final = 7_500.0
"""Of an LLM of 8 billion parameters on one H100."""


def one_service(buckets: int, types: int, seed: int = 0) -> Problem:
    """One service routed by length over so many GPU types; 32 req/s in 60 buckets, 512 req/s in 960."""
    rng = random.Random(f"one-service/{buckets}/{types}/{seed}")  # noqa: S311 - instances, not secrets
    traffic = _traffic(rng, buckets)
    kinds = [_kind(rng, number) for number in range(types)]
    return Problem(
        name=f"one-service-{buckets}x{types}",
        mode=Mode.UNCONSTRAINED,
        demands=(Demand(service="chat", llm="llm-8b", routing=Routing.BY_LENGTH, buckets=traffic),),
        candidates=tuple(_candidate(rng, kind, traffic) for kind in kinds),
        pools=tuple(
            PoolState(id=f"pool-{kind.name}", accelerator=kind.name, failure_domain=f"pool-{kind.name}")
            for kind in kinds
        ),
    )


def _traffic(rng: random.Random, buckets: int) -> tuple[DemandBucket, ...]:
    """Lengths fall off as logarithms do in chats: a bell around 250 in and 250 out, shaken a little."""
    inputs, outputs = GRIDS[buckets]
    weights = {
        (i, o): exp(-((log(i / 250) / 2.0) ** 2 + (log(o / 250) / 1.2) ** 2) / 2) * rng.uniform(0.6, 1.4)
        for i, o in product(inputs, outputs)
    }
    whole = sum(weights.values())
    return tuple(
        DemandBucket(
            id=f"{number:03}-{i}-{o}",
            arrival_rps=figures(_RPS[buckets] * weight / whole),
            input_tokens=i,
            output_tokens=o,
        )
        for number, ((i, o), weight) in enumerate(weights.items())
    )


def _kind(rng: random.Random, number: int) -> Kind:
    """The known types, then more of them that differ in speed, memory and price."""
    base = KINDS[number % len(KINDS)]
    if number < len(KINDS):
        return Kind(
            f"{number:02}-{base.name}",
            base.memory_gib,
            base.speed,
            base.usd_per_h,
            base.watts,
            base.prefill_weight,
        )
    speed = base.speed * exp(rng.gauss(0, 0.2))
    price = base.usd_per_h * exp(rng.gauss(0, 0.15))
    memory = base.memory_gib * rng.choice((0.75, 1.0, 1.5))
    return Kind(f"{number:02}-{base.name}", memory, speed, round(price, 3), base.watts, base.prefill_weight)


def _candidate(rng: random.Random, kind: Kind, traffic: Sequence[DemandBucket]) -> Candidate:
    by_bucket = {bucket.id: _rating(rng, kind, bucket) for bucket in traffic}
    whole = sum(bucket.arrival_rps for bucket in traffic)
    mixed = whole / sum(bucket.arrival_rps / by_bucket[bucket.id].rated_rps for bucket in traffic)
    pool = f"pool-{kind.name}"
    return Candidate(
        id=candidate_id("chat", kind.name, pool),
        service="chat",
        variant=kind.name,
        pool=pool,
        accelerator=kind.name,
        rated_rps=figures(mixed),
        surge_rps=figures(mixed),
        by_bucket=by_bucket,
        cost=kind.usd_per_h,
        power_w=kind.watts,
    )


def _rating(rng: random.Random, kind: Kind, bucket: DemandBucket) -> BucketRating:
    """Tokens per second over the weighted tokens of a request; long requests suit large memory."""
    tokens = bucket.output_tokens + kind.prefill_weight * bucket.input_tokens
    crowded = 1 + (bucket.input_tokens + bucket.output_tokens) / (250 * kind.memory_gib)
    rate = figures(_TOKENS_PER_S * kind.speed / tokens / crowded * exp(rng.gauss(0, 0.05)))
    return BucketRating(rated_rps=rate, surge_rps=rate)
