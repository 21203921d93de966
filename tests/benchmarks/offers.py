"""Services and their candidates as instances have them: sizes of LLMs, rates, demands, headroom, what runs now."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, exp, log10
from statistics import NormalDist, median
from typing import Final

from models.problem import BucketRating, Candidate, Demand, DemandBucket, candidate_id
from models.saturation import Headroom
from models.variant import Role
from models.workload import PrefillDecodeRatio, Routing
from tests.benchmarks.market import DOMAINS, NODE_GPUS, Kind, Site, fabric

__all__ = ["Offer", "Traits", "offers"]

_LLMS: Final = {8: 6, 14: 5, 32: 4, 70: 3, 120: 2, 235: 1, 405: 1}
"""Parameters (billions) of LLMs, and how often they are served."""

_LARGE_LLMS: Final = {8: 2, 14: 2, 32: 2, 70: 4, 120: 3, 235: 2, 405: 1}
"""The same where large LLMs are the rule."""

_TP: Final = (1, 2, 4, 8)
_QUANTIZATION: Final = {"fp8": (1.0, 1.0), "bf16": (2.0, 0.62)}
"""Bytes per parameter and speed beside FP8."""

_TUNING: Final = {"throughput": (1.0, 1.1), "latency": (0.85, 1.4)}
"""Rated speed, and surge rate over rated rate."""

_ROLES: Final = {Role.BOTH: 1.0, Role.PREFILL: 3.1, Role.DECODE: 1.7}
"""Speed of a replica that only prefills or only decodes, beside one that does both."""

_TOKENS_PER_S: Final = 60_000.0
"""Of a billion parameters on one H100, FP8."""

_FILLS: Final = 0.85
"""Share of the memory that weights may take."""

_REPLICAS: Final = NormalDist(0.0, 2.0)
"""Logarithm of how many middling replicas a demand is worth: fractions of one to hundreds."""

_MOST_REPLICAS: Final = 500.0
_START_H: Final = 0.1
_BUCKETS: Final = ((200, 100), (800, 250), (2_000, 150), (2_000, 800), (8_000, 400), (24_000, 600))


@dataclass(frozen=True, slots=True)
class Traits:
    """How the services of a family are.

    Attributes:
        pools: how many pools a service may use; None: all.
        per_pool: variants of a service in a pool at most.
        by_length: several buckets, each routed where it is served best.
        disaggregated: prefill and decode replicas; every second service may also run aggregated.
        spanning: large LLMs are the rule, and the largest also run over two nodes of a fabric domain.
    """

    pools: int | None = None
    per_pool: int = 5
    by_length: bool = False
    disaggregated: bool = False
    spanning: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A demand and what can serve it."""

    demand: Demand
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class _Llm:
    """What is served: size, tokens, how well each type suits it."""

    service: str
    billions: int
    buckets: tuple[tuple[int, int, float], ...]
    suits: dict[str, float]


def offers(rng: random.Random, count: int, places: Sequence[Site], traits: Traits) -> list[Offer]:
    """So many services; their sizes are spread over the quantiles of one distribution, so any number has small and large."""
    ranks = rng.sample(range(count), count)
    return [
        _offer(rng, number, (ranks[number] + rng.random()) / count, places, traits) for number in range(count)
    ]


def _offer(rng: random.Random, number: int, quantile: float, places: Sequence[Site], traits: Traits) -> Offer:
    llm = _llm(rng, number, places, traits)
    reachable = places if traits.pools is None else rng.sample(list(places), traits.pools)
    roles = [Role.BOTH]
    if traits.disaggregated:
        roles = [Role.PREFILL, Role.DECODE] + [Role.BOTH] * (number % 2)
    per_pool = max(1, round(traits.per_pool / len(roles)))
    made = [
        candidate
        for role in roles
        for site in reachable
        for candidate in _in_pool(rng, llm, site, role, (per_pool, traits))
    ]
    size = min(_MOST_REPLICAS, exp(_REPLICAS.inv_cdf(min(max(quantile, 1e-4), 1 - 1e-4))))
    demand = _demand(rng, llm, figures(size * median(c.rated_rps for c in made)), made, traits)
    return Offer(demand, tuple(_running(rng, demand, made)))


def _llm(rng: random.Random, number: int, places: Sequence[Site], traits: Traits) -> _Llm:
    often = _LARGE_LLMS if traits.spanning else _LLMS
    (billions,) = rng.choices(list(often), list(often.values()))
    kinds = sorted({site.kind.name for site in places})
    shapes = rng.sample(_BUCKETS, rng.randint(3, 6) if traits.by_length else 1)
    weights = [rng.uniform(0.2, 1.0) for _ in shapes]
    spread = 1.0 if traits.by_length else exp(rng.uniform(-1.2, 1.2))
    buckets = tuple(
        (max(1, round(i * spread)), max(1, round(o * spread)), weight / sum(weights))
        for (i, o), weight in zip(sorted(shapes), weights, strict=True)
    )
    suits = {kind: exp(rng.gauss(0, 0.22)) for kind in kinds}
    return _Llm(f"service-{number:05}", billions, buckets, suits)


def _in_pool(
    rng: random.Random, llm: _Llm, site: Site, role: Role, wanted: tuple[int, Traits]
) -> Iterator[Candidate]:
    """Variants whose weights fit, at most so many; over two nodes what does not fit on one, or fills it."""
    per_pool, traits = wanted
    shapes = [
        (tp, q, t) for tp in _TP for q in _QUANTIZATION for t in _TUNING if _fits(llm, site.kind, tp, q)
    ]
    for tp, quantization, tuning in sorted(rng.sample(shapes, min(per_pool, len(shapes)))):
        yield _candidate(rng, llm, site, (role, tp, quantization, tuning), None)
    spans = traits.spanning and _fits(llm, site.kind, 16, "bf16") and not _fits(llm, site.kind, 4, "bf16")
    for domain in range(DOMAINS if spans else 0):
        yield _candidate(rng, llm, site, (role, 16, "bf16", "throughput"), fabric(site, domain))


def _fits(llm: _Llm, kind: Kind, tp: int, quantization: str) -> bool:
    # Beyond eight times what it needs, nobody splits an LLM.
    weights, memory = llm.billions * _QUANTIZATION[quantization][0], kind.memory_gib * tp * _FILLS
    return weights <= memory <= 40 * max(weights, 8.0)


def _candidate(
    rng: random.Random, llm: _Llm, site: Site, variant: tuple[Role, int, str, str], domain: str | None
) -> Candidate:
    role, tp, quantization, tuning = variant
    speed, surge = _TUNING[tuning]
    speed *= _ROLES[role] * _QUANTIZATION[quantization][1] * tp**0.88 * exp(rng.gauss(0, 0.06))
    by_bucket = {
        _bucket_name(number): figures(speed * _bucket_rps(llm, site.kind, i, o))
        for number, (i, o, _) in enumerate(llm.buckets)
    }
    rated = figures(
        1 / sum(share / by_bucket[_bucket_name(n)] for n, (_, _, share) in enumerate(llm.buckets))
    )
    name = f"{role}-{tp}-{quantization}-{tuning}"
    pods = max(1, tp // NODE_GPUS)
    cost = round(site.kind.usd_per_h * site.price * tp, 4)
    return Candidate(
        id=candidate_id(llm.service, name, site.pool, domain),
        service=llm.service,
        variant=name,
        role=role,
        pool=site.pool,
        accelerator=site.kind.name,
        fabric_domain=domain,
        parallelism=f"TP{tp}",
        pods_per_replica=pods,
        gpus_per_pod=tp // pods,
        rated_rps=rated,
        surge_rps=figures(rated * surge),
        by_bucket={}
        if len(by_bucket) == 1
        else {b: BucketRating(rated_rps=r, surge_rps=figures(r * surge)) for b, r in by_bucket.items()},
        cost=cost,
        startup_cost=round(cost * _START_H, 4),
        power_w=site.kind.watts * tp,
        max_replicas=rng.randint(4, 40) if rng.random() < 0.05 else None,
    )


def _bucket_rps(llm: _Llm, kind: Kind, input_tokens: int, output_tokens: int) -> float:
    """Tokens per second over the weighted tokens of a request; long requests suit large memory."""
    tokens = output_tokens + kind.prefill_weight * input_tokens
    crowded = 1 + (input_tokens + output_tokens) / (250 * kind.memory_gib)
    return _TOKENS_PER_S / llm.billions * kind.speed * llm.suits[kind.name] / tokens / crowded


def _bucket_name(number: int) -> str:
    return f"bucket-{number}"


def _demand(rng: random.Random, llm: _Llm, rps: float, made: Sequence[Candidate], traits: Traits) -> Demand:
    number = int(llm.service.rpartition("-")[2])
    fewest = ceil(1.4 * rps / max(c.rated_rps for c in made)) * (2 if traits.disaggregated else 1)
    return Demand(
        service=llm.service,
        llm=f"llm-{llm.billions}b",
        namespace=f"team-{number % 10}",
        priority=rng.choice((1, 1, 2, 3)),
        routing=Routing.BY_LENGTH if traits.by_length else Routing.MIXED,
        buckets=tuple(
            DemandBucket(
                id=_bucket_name(n), arrival_rps=figures(rps * share), input_tokens=i, output_tokens=o
            )
            for n, (i, o, share) in enumerate(llm.buckets)
        ),
        headroom=_headroom(rng, rps),
        min_replicas=rng.choice((0, 0, 0, 1, 2)),
        max_replicas=8 * fewest + 8 if rng.random() < 0.1 else None,
        ratio=PrefillDecodeRatio(min=0.1, max=2.0) if traits.disaggregated and number % 3 == 0 else None,
    )


def _headroom(rng: random.Random, rps: float) -> Headroom:
    kind = rng.random()
    if kind < 0.3:
        return Headroom()
    return (
        Headroom(relative=rng.choice((0.1, 0.2, 0.3)))
        if kind < 0.8
        else Headroom(burst_rps=figures(0.2 * rps))
    )


def _running(rng: random.Random, demand: Demand, made: Sequence[Candidate]) -> Iterator[Candidate]:
    """Candidates with what runs now: two of three services have replicas for about today's load on a good variant."""
    runs = set[str]()
    if rng.random() < 2 / 3:
        for role in sorted({c.role for c in made}):
            good = sorted((c for c in made if c.role is role), key=lambda c: (c.cost / c.rated_rps, c.id))
            runs.add(rng.choice(good[:4]).id)
    for candidate in made:
        if candidate.id not in runs:
            yield candidate
            continue
        count = ceil(demand.arrival_rps * rng.uniform(0.6, 1.3) / candidate.rated_rps)
        yield candidate.model_copy(update={"current": min(count, candidate.max_replicas or count)})


def figures(value: float, digits: int = 4) -> float:
    """Rounded to so many significant digits, as measurements are."""
    return round(value, digits - 1 - int(log10(value) // 1))
