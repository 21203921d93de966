"""The fleet as it runs: counts, seats, what may be removed, and that nothing that runs is lost from sight."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.problem import Candidate, Problem
from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.sizing.leftovers import UNRATED_RPS
from tests.scenarios import (
    a_node_entry,
    a_pool_entry,
    a_rating,
    a_running,
    a_scenario,
    a_service,
    a_shape,
    a_variant,
    an_accelerator,
    one_rps,
    rates,
    sized,
)

CALM = {"kv_usage": 0.2, "queue": 1.0}
FULL = {"kv_usage": 0.9, "queue": 1.0}
BLIND: dict[str, Any] = {}


def the_candidate(problem: Problem, name: str = "chat/small@east") -> Candidate:
    return {str(candidate.id): candidate for candidate in problem.candidates}[name]


def seats(problem: Problem) -> dict[str, dict[tuple[str, ...], int]]:
    found: dict[str, dict[tuple[str, ...], int]] = {}
    for incumbent in problem.incumbents:
        found.setdefault(incumbent.candidate, {})[incumbent.nodes] = incumbent.count
    return found


def on(*nodes: str, **metrics: Any) -> dict[str, Any]:
    return {"nodes": nodes} | metrics


class TestSeats:
    """Replicas whose nodes are known."""

    def test_replicas_on_the_same_nodes_are_counted_together(self) -> None:
        details = (on("east-n-0"), on("east-n-1"), on("east-n-0"))
        problem = sized(a_scenario(a_running(4, pending=2, details=details)))
        assert seats(problem) == {"chat/small@east": {("east-n-0",): 2, ("east-n-1",): 1}}
        candidate = the_candidate(problem)
        assert (candidate.current, candidate.pending) == (4, 2)

    @pytest.mark.parametrize("nodes", [(), ("west-n-0",), ("east-n-0", "east-n-1")])
    def test_nodes_that_are_not_known_for_certain_are_no_seat(self, nodes: tuple[str, ...]) -> None:
        problem = sized(a_scenario(a_running(1, details=(on(*nodes),))))
        assert (problem.incumbents, the_candidate(problem).current) == ((), 1)

    def test_a_replica_on_a_cordoned_node_keeps_its_seat(self) -> None:
        pool = a_pool_entry(nodes=(a_node_entry("a", cordoned=True),))
        problem = sized(a_scenario(a_running(1, details=(on("a"),)), pools=(pool,)))
        assert seats(problem) == {"chat/small@east": {("a",): 1}}

    def test_a_replica_on_a_node_that_is_not_ready_is_on_order_again(self) -> None:
        pool = a_pool_entry(nodes=(a_node_entry("a", ready=False), a_node_entry("b")))
        problem = sized(a_scenario(a_running(3, pending=1, details=(on("a"), on("b"))), pools=(pool,)))
        candidate = the_candidate(problem)
        assert (candidate.current, candidate.pending) == (2, 2)
        assert seats(problem) == {"chat/small@east": {("b",): 1}}

    def test_pods_of_a_replica_are_named_in_order(self) -> None:
        service = a_service(variants=(a_variant(parallelism={"tp": 4}, pods_per_replica=2),))
        details = (on("east-n-1", "east-n-0"), on("east-n-0", "east-n-1"))
        problem = sized(a_scenario(a_running(2, details=details), services=(service,)))
        assert seats(problem) == {"chat/small@east": {("east-n-0", "east-n-1"): 2}}


class TestDomains:
    """Which fabric domain a replica that spans nodes runs in."""

    POOL = a_pool_entry(
        nodes=(a_node_entry("a", count=2, fabric_domain="r0"), a_node_entry("b", count=4, fabric_domain="r1"))
    )
    SERVICE = a_service(variants=(a_variant(parallelism={"tp": 16}, pods_per_replica=2),))

    def counts(self, **row: Any) -> dict[str, tuple[int, int]]:
        scenario = a_scenario(a_running(**row), services=(self.SERVICE,), pools=(self.POOL,))
        return {str(c.fabric_domain): (c.current, c.pending) for c in sized(scenario).candidates}

    def test_known_nodes_tell(self) -> None:
        assert self.counts(replicas=1, details=(on("a-0", "a-1"),)) == {"r0": (1, 0), "r1": (0, 0)}

    def test_unknown_ones_are_taken_to_be_where_room_is(self) -> None:
        assert self.counts(replicas=3) == {"r0": (1, 0), "r1": (2, 0)}
        assert self.counts(replicas=2, pending=1) == {"r0": (0, 1), "r1": (2, 0)}

    def test_known_ones_take_their_room_first(self) -> None:
        seated = (on("b-0", "b-1"), on("b-2", "b-3"))
        assert self.counts(replicas=3, details=seated) == {"r0": (1, 0), "r1": (2, 0)}

    def test_none_is_lost_where_there_is_no_room(self) -> None:
        assert self.counts(replicas=10) == {"r0": (1, 0), "r1": (9, 0)}

    def test_a_replica_over_two_domains_has_no_seat(self) -> None:
        scenario = a_scenario(
            a_running(1, details=(on("a-0", "b-0"),)), services=(self.SERVICE,), pools=(self.POOL,)
        )
        assert sized(scenario).incumbents == ()


class TestScaleIn:
    """Only what is surely idle may be removed."""

    @pytest.mark.parametrize(
        ("replicas", "details", "permitted"),
        [
            (3, (), True),
            (3, (on("east-n-0"),), True),
            (3, (CALM, CALM, CALM), True),
            (2, (CALM, FULL), False),
            (4, (CALM, CALM, CALM, FULL), False),
            (1, (CALM,), False),
            (3, (CALM, CALM), False),
            (3, (CALM, CALM, BLIND), False),
            (3, (CALM, CALM, {"kv_usage": 0.2}), False),
            (0, (), True),
        ],
    )
    def test_one_variant(self, replicas: int, details: tuple[dict[str, Any], ...], permitted: bool) -> None:
        assert (
            the_candidate(sized(a_scenario(a_running(replicas, details=details)))).scale_in_permitted
            is permitted
        )

    @staticmethod
    def two(
        small: tuple[dict[str, Any], ...], large: tuple[dict[str, Any], ...], **fields: Any
    ) -> list[bool]:
        """Whether ``small`` and ``large`` of one service may shrink."""
        variants = (a_variant("small"), a_variant("large", role=fields.pop("large_role", "both")))
        variants += tuple(a_variant(f"v-{role}", role=role) for role in fields.pop("beside", ()))
        scenario = a_scenario(
            a_running(len(small), details=small),
            a_running(len(large), variant="large", details=large),
            services=(a_service(variants=variants, **fields),),
        )
        problem = sized(scenario)
        return [the_candidate(problem, f"chat/{name}@east").scale_in_permitted for name in ("small", "large")]

    def test_variants_pool_together(self) -> None:
        assert self.two((CALM,), (CALM, CALM)) == [True, True]

    def test_a_full_replica_holds_its_own_variant_only(self) -> None:
        assert self.two((CALM, CALM, CALM), (FULL,)) == [True, False]

    def test_a_blind_variant_beside_a_seeing_one_counts_as_busy(self) -> None:
        assert self.two((CALM, CALM, CALM), (BLIND,)) == [False, False]

    def test_roles_are_judged_apart(self) -> None:
        assert self.two((CALM, CALM, CALM), (FULL,), large_role="prefill", beside=("decode",)) == [
            True,
            False,
        ]

    def test_thresholds_of_the_service_count(self) -> None:
        assert self.two((CALM,), (CALM, CALM), thresholds={"min_non_saturated_for_scale_in": 4}) == [
            False,
            False,
        ]

    @pytest.mark.parametrize(
        ("rps", "detail", "permitted"),
        [
            (0.0, {"kv_usage": 0.0, "queue": 0}, True),
            (0.1, {"kv_usage": 0.0, "queue": 0}, False),
            (0.0, {"kv_usage": 0.1, "queue": 0}, False),
            (0.0, {"kv_usage": 0.0}, False),
        ],
    )
    def test_a_service_asleep_may_go_to_zero(
        self, rps: float, detail: dict[str, Any], permitted: bool
    ) -> None:
        scenario = a_scenario(
            a_running(1, details=(detail,)), services=(a_service(buckets=(a_shape(rps=rps),)),)
        )
        assert the_candidate(sized(scenario)).scale_in_permitted is permitted


class TestLeftovers:
    """What runs and is no candidate."""

    @staticmethod
    def of(scenario: Scenario, answer: Any = None) -> tuple[Candidate, list[Reason]]:
        rate = (
            one_rps
            if answer is None
            else rates({"small": answer, "other": a_rating()}, lambda q: q.variant.id)
        )
        problem = sized(scenario, rate)
        return the_candidate(problem), [rejection.reason for rejection in problem.rejected]

    def test_a_place_that_is_denied_now_is_left(self) -> None:
        service = a_service(places={"deny_pools": ("east",)})
        running = a_running(3, pending=1, details=(on("east-n-0", **FULL),))
        candidate, reasons = self.of(a_scenario(running, services=(service,)))
        assert reasons == [Reason.POOL_NOT_ALLOWED]
        assert (candidate.current, candidate.pending, candidate.max_replicas) == (3, 1, 0)
        assert candidate.scale_in_permitted
        assert candidate.rated_rps == 1.0

    def test_it_keeps_its_seat_until_then(self) -> None:
        service = a_service(places={"deny_pools": ("east",)})
        problem = sized(a_scenario(a_running(1, details=(on("east-n-0"),)), services=(service,)))
        assert seats(problem) == {"chat/small@east": {("east-n-0",): 1}}

    def test_a_pool_that_the_variant_no_longer_names_is_left(self) -> None:
        service = a_service(variants=(a_variant(pools=("west",)),))
        pools = (a_pool_entry("east"), a_pool_entry("west"))
        candidate, reasons = self.of(a_scenario(a_running(1), services=(service,), pools=pools))
        assert (reasons, candidate.max_replicas) == ([Reason.POOL_NOT_ALLOWED], 0)

    def test_a_step_limit_does_not_hold_what_must_leave(self) -> None:
        service = a_service(places={"deny_pools": ("east",)}, variants=(a_variant(max_step_down=1),))
        candidate, _ = self.of(a_scenario(a_running(3), services=(service,)))
        assert candidate.max_step_down is None

    @pytest.mark.parametrize("reason", [Reason.NO_MEASUREMENT, Reason.PERCENTILE_NOT_MEASURED])
    def test_what_nobody_measured_stays_as_it_is_and_carries_nothing(self, reason: Reason) -> None:
        service = a_service(variants=(a_variant(), a_variant("other")))
        candidate, reasons = self.of(a_scenario(a_running(2, pending=1), services=(service,)), reason)
        assert reasons == [reason]
        assert (candidate.max_replicas, candidate.scale_in_permitted) == (3, False)
        assert (candidate.rated_rps, candidate.surge_rps) == (UNRATED_RPS, UNRATED_RPS)

    @pytest.mark.parametrize(("other", "most"), [(True, 0), (False, 2)])
    def test_a_broken_promise_is_ended_where_something_else_keeps_it(self, other: bool, most: int) -> None:
        variants = (a_variant(), *((a_variant("other"),) if other else ()))
        service = a_service(variants=variants)
        candidate, reasons = self.of(a_scenario(a_running(2), services=(service,)), Reason.SLO_NOT_MET)
        assert (reasons, candidate.max_replicas) == ([Reason.SLO_NOT_MET], most)
        assert candidate.scale_in_permitted is other

    def test_it_does_not_decide_what_guests_may_borrow(self) -> None:
        host = a_service(variants=(a_variant(), a_variant("other")))
        guest = a_service("jobs", kind="batch", shares_replicas_of="chat", variants=())
        answers = {
            "small": Reason.NO_MEASUREMENT,
            "other": a_rating(4, kv_tokens_per_rps=50, kv_capacity_tokens=100),
        }
        problem = sized(
            a_scenario(a_running(2), services=(host, guest)),
            rates(answers, lambda question: question.variant.id),
        )
        weights = {c.variant: c.surge_rps / c.guest_surge_rps[guest.id] for c in problem.candidates}
        assert weights["other"] == 1.0 > weights["small"]
        leftover = the_candidate(problem)
        assert (leftover.kv_capacity_tokens, leftover.kv_tokens_per_rps) == (None, None)

    def test_what_does_not_run_is_only_rejected(self) -> None:
        service = a_service(places={"deny_pools": ("east",)})
        assert sized(a_scenario(a_running(0), services=(service,))).candidates == ()

    def test_an_unknown_price_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError) as caught:
            sized(a_scenario(a_running(1), pools=(a_pool_entry(offering={}),)))
        assert [f.found for f in caught.value.findings] == ["chat/small@east runs and its cost is unknown"]

    def test_unknown_power_under_a_cap_is_an_error(self) -> None:
        scenario = a_scenario(
            a_running(1),
            accelerators=(an_accelerator("H100", tdp_w=None),),
            limits={"power": ({"id": "hall", "cap_w": 1e6, "pools": ("east",)},)},
        )
        with pytest.raises(ConfigurationError) as caught:
            sized(scenario)
        assert [f.found for f in caught.value.findings] == [
            "chat/small@east runs under a power cap and its power is unknown"
        ]
