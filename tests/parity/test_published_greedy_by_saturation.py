"""Greedy-by-Saturation and the composite limiter: the published cases, and more of the same kinds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from planner.saturation.published import (
    UNBOUNDED,
    Grant,
    Growth,
    Reason,
    VariantState,
    greedy_by_saturation,
    limit_in_sequence,
)


def wish(name: str, headroom: float, target: int, current: int = 1, **more: object) -> Growth:
    fields: dict[str, object] = {"accelerator": "A100", "cost": 1.0, "gpus_per_replica": 2, **more}
    variant = VariantState(name=name, per_replica_capacity=1.0, current=current, **fields)  # type: ignore[arg-type]
    return Growth(service=f"default/{name}", variant=variant, target=target, headroom=headroom)


def targets(grants: tuple[Grant, ...]) -> tuple[int, ...]:
    return tuple(grant.target for grant in grants)


THREE = (wish("mid", 0.3, 2), wish("full", 0.05, 2), wish("idle", 0.5, 2))

PUBLISHED = {
    "GB-1": (THREE, {"A100": 6}, (2, 2, 2), (False,) * 3),
    "GB-4": ((wish("a", 0.0, 10, max_replicas=3),), {"A100": 100}, (3,), (False,)),
    "GB-5": ((wish("a", 0.0, 5, min_replicas=3),), {"A100": 0}, (3,), (True,)),
    "GB-6-down": ((wish("a", 0.9, 1, current=3),), {"A100": 0}, (1,), (False,)),
    "GB-6-steady": ((wish("a", 0.4, 3, current=3),), {"A100": 0}, (3,), (False,)),
}

SAME_KIND = {
    "fullest-first-under-scarcity": (THREE, {"A100": 2}, (1, 2, 1), (True, False, True)),
    "two-of-three": (THREE, {"A100": 5}, (2, 2, 1), (False, False, True)),
    "no-gpus": (THREE, {"A100": 0}, (1, 1, 1), (True,) * 3),
    "no-pools": (THREE, {}, (1, 1, 1), (True,) * 3),
    "unlimited": (THREE, {"A100": -1}, (2, 2, 2), (False,) * 3),
    "partial-grant-in-whole-replicas": ((wish("a", 0.0, 5),), {"A100": 7}, (4,), (True,)),
    "partial-grant-leaves-the-rest-to-smaller-ones": (
        (wish("a", 0.0, 3, gpus_per_replica=4), wish("b", 0.2, 4, gpus_per_replica=1)),
        {"A100": 7},
        (2, 4),
        (True, False),
    ),
    "a-replica-larger-than-the-pool": ((wish("a", 0.0, 2, gpus_per_replica=8),), {"A100": 7}, (1,), (True,)),
    "zero-gpus-per-replica-is-one": ((wish("a", 0.0, 4, gpus_per_replica=0),), {"A100": 2}, (3,), (True,)),
    "equal-headroom-cheaper-first": (
        (wish("a", 0.1, 2, cost=9.0), wish("b", 0.1, 2, cost=1.0)),
        {"A100": 2},
        (1, 2),
        (True, False),
    ),
    "equal-headroom-and-cost-by-name": (
        (wish("b", 0.1, 2), wish("a", 0.1, 2)),
        {"A100": 2},
        (1, 2),
        (True, False),
    ),
    "negative-headroom-is-fuller-than-none": (
        (wish("a", 0.0, 2), wish("b", -0.2, 2)),
        {"A100": 2},
        (1, 2),
        (True, False),
    ),
    "pools-do-not-mix": (
        (wish("a", 0.0, 3), wish("b", 0.9, 3, accelerator="H100")),
        {"A100": 0, "H100": 4},
        (1, 3),
        (True, False),
    ),
    "a-type-no-pool-lists": ((wish("a", 0.0, 2, accelerator="L4"),), {"A100": 8}, (1,), (True,)),
    "unknown-type-in-a-cluster-of-one": (
        (wish("a", 0.0, 2, accelerator="unknown"),),
        {"A100": 8},
        (2,),
        (False,),
    ),
    "empty-type-in-a-cluster-of-one": ((wish("a", 0.0, 2, accelerator=""),), {"A100": 8}, (2,), (False,)),
    "unknown-type-in-a-mixed-cluster": (
        (wish("a", 0.0, 2, accelerator="unknown"),),
        {"A100": 8, "H100": 8},
        (1,),
        (True,),
    ),
    "ceiling-of-what-runs": ((wish("a", 0.0, 5, current=3, max_replicas=3),), {"A100": 8}, (3,), (False,)),
    "ceiling-below-what-runs-lowers": (
        (wish("a", 0.0, 5, current=4, max_replicas=2),),
        {"A100": 8},
        (2,),
        (False,),
    ),
    "ceiling-zero-is-none": ((wish("a", 0.0, 5, max_replicas=0),), {"A100": 8}, (5,), (False,)),
    "ceiling-then-pool": ((wish("a", 0.0, 9, max_replicas=5),), {"A100": 4}, (3,), (True,)),
    "capped-by-ceiling-leaves-gpus": (
        (wish("a", 0.0, 9, max_replicas=2), wish("b", 0.5, 3)),
        {"A100": 6},
        (2, 3),
        (False, False),
    ),
    "minimum-beside-a-partial-grant": ((wish("a", 0.0, 5, min_replicas=4),), {"A100": 2}, (4,), (True,)),
    "minimum-met-by-the-grant": ((wish("a", 0.0, 5, min_replicas=3),), {"A100": 4}, (3,), (True,)),
    "minimum-above-the-wish": ((wish("a", 0.0, 2, min_replicas=4),), {"A100": 8}, (4,), (False,)),
    "minimum-below-what-runs": ((wish("a", 0.0, 5, current=2, min_replicas=1),), {"A100": 0}, (2,), (True,)),
    "from-zero": ((wish("a", 0.0, 2, current=0),), {"A100": 2}, (1,), (True,)),
    "scale-down-frees-nothing": (
        (wish("down", 0.9, 1, current=3), wish("up", 0.0, 2)),
        {"A100": 0},
        (1, 1),
        (False, True),
    ),
    "pending-does-not-matter": ((wish("a", 0.0, 3, pending=1),), {"A100": 4}, (3,), (False,)),
}


@pytest.mark.parametrize(("growths", "free", "expected", "limited"), PUBLISHED.values(), ids=PUBLISHED)
def test_a_published_case_gives_the_published_targets(
    growths: tuple[Growth, ...], free: dict[str, int], expected: tuple[int, ...], limited: tuple[bool, ...]
) -> None:
    grants = greedy_by_saturation(growths, free)
    assert (targets(grants), tuple(grant.limited for grant in grants)) == (expected, limited)


@pytest.mark.parametrize(("growths", "free", "expected", "limited"), SAME_KIND.values(), ids=SAME_KIND)
def test_a_case_of_the_same_kind_follows_the_same_rules(
    growths: tuple[Growth, ...], free: dict[str, int], expected: tuple[int, ...], limited: tuple[bool, ...]
) -> None:
    for order in itertools.permutations(range(len(growths))):
        grants = greedy_by_saturation([growths[index] for index in order], free)
        assert targets(grants) == tuple(expected[index] for index in order)
        assert tuple(grant.limited for grant in grants) == tuple(limited[index] for index in order)


def test_gb_1_serves_the_fullest_first() -> None:
    ranks = {grant.growth.variant.name: grant.rank for grant in greedy_by_saturation(THREE, {"A100": 6})}
    assert ranks == {"full": 0, "mid": 1, "idle": 2}


def test_gb_5_says_that_the_minimum_stands_without_gpus() -> None:
    (grant,) = greedy_by_saturation(*PUBLISHED["GB-5"][:2])
    assert (grant.reason, grant.gpus, grant.limited) == (Reason.MINIMUM_WITHOUT_GPUS, 0, True)


def test_gb_6_takes_no_gpus_and_no_rank() -> None:
    for case in ("GB-6-down", "GB-6-steady"):
        (grant,) = greedy_by_saturation(*PUBLISHED[case][:2])
        assert (grant.gpus, grant.rank) == (0, None)


REASONS = {
    "granted": (wish("a", 0.0, 2), 2, Reason.SCALE_UP),
    "short": (wish("a", 0.0, 3), 2, Reason.GPUS_EXHAUSTED),
    "capped": (wish("a", 0.0, 9, max_replicas=2), 8, Reason.MAXIMUM),
    "steady": (wish("a", 0.0, 1), 8, Reason.STEADY),
    "down": (wish("a", 0.0, 0), 8, Reason.SCALE_DOWN),
}


@pytest.mark.parametrize(("growth", "free", "reason"), REASONS.values(), ids=REASONS)
def test_every_grant_has_its_reason(growth: Growth, free: int, reason: Reason) -> None:
    (grant,) = greedy_by_saturation([growth], {"A100": free})
    assert grant.reason is reason


SEQUENCES = {
    "the-tighter-wins": (({"A100": 8}, {"A100": 4}), 3, True),
    "in-either-order": (({"A100": 4}, {"A100": 8}), 3, True),
    "one-that-denies": (({"A100": 8}, {}), 1, True),
    "all-generous": (({"A100": 80}, {"A100": UNBOUNDED}), 5, False),
    "one-that-cannot-answer-opens-all": (({"A100": 0}, None), 5, False),
    "none-at-all": ((), 5, False),
}


@pytest.mark.parametrize(("limiters", "target", "limited"), SEQUENCES.values(), ids=SEQUENCES)
def test_limiters_in_sequence_leave_the_tightest_grant(
    limiters: tuple[Mapping[str, int] | None, ...], target: int, limited: bool
) -> None:
    asked = wish("a", 0.0, 5)
    (grant,) = limit_in_sequence([asked], limiters)
    assert (grant.target, grant.limited, grant.growth) == (target, limited, asked)
