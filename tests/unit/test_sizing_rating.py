"""Mixing of request shapes by numbers worked out by hand, stated capacities, and guests on shared replicas."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.explanation import Reason
from models.performance import Origin, Rating, RatingQuestion, Unrated
from models.problem import Candidate
from models.workload import Service
from planner.performance import rate_given
from planner.sizing import Rate
from tests.scenarios import a_rating, a_scenario, a_service, a_shape, a_variant, one_rps, rates, sized

SHORT, LONG, HUGE = 100, 1000, 9000


def by_input(**table: Rating | Reason) -> Rate:
    """Ratings by what the shape is called."""
    lengths = {"short": SHORT, "long": LONG, "huge": HUGE}
    return rates(
        {lengths[name]: answer for name, answer in table.items()}, lambda question: question.input_tokens
    )


def a_mix(short: float = 3.0, long: float = 1.0, **fields: Any) -> Service:
    buckets = (a_shape("short", short, input_tokens=SHORT), a_shape("long", long, input_tokens=LONG))
    return a_service(**({"buckets": buckets} | fields))


def the_candidate(service: Service, rate: Rate, *others: Service) -> Candidate:
    problem = sized(a_scenario(services=(service, *others)), rate)
    return problem.candidate[next(c.id for c in problem.candidates if c.service == service.id)]


def stated_or(rate: Rate) -> Rate:
    """As the real one: what a variant states goes before the table."""

    def answer(question: RatingQuestion) -> Rating | Unrated:
        return rate_given(question) or rate(question)

    return answer


class TestMixed:
    """1/μ = Σ w/μ."""

    def test_rates_mix_by_time(self) -> None:
        # 3/4 of the requests at 6/s and 1/4 at 2/s: 0.125 s + 0.125 s for each request.
        candidate = the_candidate(a_mix(), by_input(short=a_rating(6), long=a_rating(2)))
        assert candidate.rated_rps == pytest.approx(4.0)

    def test_surge_mixes_alike(self) -> None:
        rate = by_input(short=a_rating(6, surge_rps=12), long=a_rating(2, surge_rps=2.4))
        # 0.75/12 + 0.25/2.4 = 1/6
        assert the_candidate(a_mix(), rate).surge_rps == pytest.approx(6.0)

    def test_kv_tokens_are_the_weighted_mean(self) -> None:
        rate = by_input(short=a_rating(6, kv_tokens_per_rps=100), long=a_rating(2, kv_tokens_per_rps=900))
        assert the_candidate(a_mix(), rate).kv_tokens_per_rps == pytest.approx(300)

    def test_one_unknown_makes_the_mean_unknown(self) -> None:
        rate = by_input(short=a_rating(6, kv_tokens_per_rps=100), long=a_rating(2))
        assert the_candidate(a_mix(), rate).kv_tokens_per_rps is None

    def test_kv_capacity_counts_up_to_tau(self) -> None:
        rate = by_input(short=a_rating(6, kv_capacity_tokens=5000), long=a_rating(2, kv_capacity_tokens=4000))
        service = a_mix(thresholds={"tau_kv": 0.5})
        assert the_candidate(service, rate).kv_capacity_tokens == pytest.approx(2000)
        rate = by_input(short=a_rating(6, kv_capacity_tokens=5000), long=a_rating(2))
        assert the_candidate(service, rate).kv_capacity_tokens is None

    def test_without_traffic_shapes_weigh_the_same(self) -> None:
        # 0.5/6 + 0.5/2 = 1/3
        candidate = the_candidate(a_mix(0, 0), by_input(short=a_rating(6), long=a_rating(2)))
        assert candidate.rated_rps == pytest.approx(3.0)

    def test_a_shape_that_never_comes_needs_no_rating(self) -> None:
        candidate = the_candidate(a_mix(3, 0), by_input(short=a_rating(6), long=Reason.NO_MEASUREMENT))
        assert candidate.rated_rps == 6

    def test_every_shape_that_comes_needs_one(self) -> None:
        problem = sized(a_scenario(services=(a_mix(),)), by_input(short=a_rating(6), long=Reason.SLO_NOT_MET))
        (rejection,) = problem.rejected
        assert (rejection.reason, problem.candidates) == (Reason.SLO_NOT_MET, ())
        assert rejection.facts == {"bucket": "long", "request_shape": "1000 × 200", "asked": True}

    def test_the_least_certain_origin_is_told_with_each_source(self) -> None:
        rate = by_input(
            short=a_rating(6, source="row 7"), long=a_rating(2, origin=Origin.MODELED, source="formula")
        )
        candidate = the_candidate(a_mix(), rate)
        assert candidate.origin is Origin.MODELED
        assert "long: formula; short: row 7" in candidate.source

    def test_nothing_is_said_of_single_shapes(self) -> None:
        assert the_candidate(a_mix(), by_input(short=a_rating(6), long=a_rating(2))).by_bucket == {}


class TestByLength:
    """Shapes go where they are served best, so each has a rate of its own."""

    def test_each_shape_has_its_rate(self) -> None:
        rate = by_input(short=a_rating(6, surge_rps=7), long=a_rating(2, kv_tokens_per_rps=900))
        candidate = the_candidate(a_mix(routing="by_length"), rate)
        assert {
            name: (one.rated_rps, one.surge_rps, one.kv_tokens_per_rps)
            for name, one in candidate.by_bucket.items()
        } == {
            "short": (6, 7, None),
            "long": (2, 2, 900),
        }
        assert candidate.rated_rps == pytest.approx(4.0)

    def test_a_shape_that_cannot_be_served_is_left_out(self) -> None:
        candidate = the_candidate(
            a_mix(routing="by_length"), by_input(short=a_rating(6), long=Reason.SLO_NOT_MET)
        )
        assert set(candidate.by_bucket) == {"short"}
        assert candidate.rated_rps == pytest.approx(6.0)

    def test_no_shape_at_all_is_a_rejection(self) -> None:
        rate = by_input(short=Reason.SLO_NOT_MET, long=Reason.NO_MEASUREMENT)
        (rejection,) = sized(a_scenario(services=(a_mix(routing="by_length"),)), rate).rejected
        assert (rejection.reason, rejection.facts["bucket"]) == (Reason.NO_MEASUREMENT, "long")

    def test_only_a_shape_that_never_comes_can_be_served(self) -> None:
        rate = by_input(short=a_rating(6), long=Reason.SLO_NOT_MET)
        candidate = the_candidate(a_mix(0, 1, routing="by_length"), rate)
        assert (set(candidate.by_bucket), candidate.rated_rps) == ({"short"}, 6)

    def test_a_stated_rate_is_that_of_the_mix_and_is_split(self) -> None:
        variant = a_variant(capacity={"rated_rps": 8.0})
        rate = stated_or(by_input(short=a_rating(6, surge_rps=9), long=a_rating(2, surge_rps=3)))
        candidate = the_candidate(a_mix(routing="by_length", variants=(variant,)), rate)
        # The table says 4 for the mix, so everything is doubled.
        assert candidate.rated_rps == 8.0
        assert candidate.by_bucket["short"].rated_rps == pytest.approx(12)
        assert candidate.by_bucket["long"].rated_rps == pytest.approx(4)
        assert candidate.by_bucket["long"].surge_rps == pytest.approx(6)

    def test_a_stated_rate_cannot_be_split_without_a_table(self) -> None:
        service = a_mix(routing="by_length", variants=(a_variant(capacity={"rated_rps": 8.0}),))
        rate = stated_or(by_input(short=Reason.NO_MEASUREMENT, long=Reason.NO_MEASUREMENT))
        assert [r.reason for r in sized(a_scenario(services=(service,)), rate).rejected] == [
            Reason.NO_MEASUREMENT
        ]

    def test_a_single_shape_is_the_mix(self) -> None:
        service = a_service(
            routing="by_length", variants=(a_variant(capacity={"rated_rps": 8.0, "surge_rps": 9.0}),)
        )
        candidate = the_candidate(service, stated_or(one_rps))
        assert (candidate.rated_rps, candidate.surge_rps) == (8.0, 9.0)
        assert candidate.by_bucket["all"].rated_rps == pytest.approx(8.0)


class TestStated:
    """What the user measured goes before everything."""

    def test_it_is_the_rate_of_the_mix_to_the_last_bit(self) -> None:
        variant = a_variant(capacity={"rated_rps": 0.63, "surge_rps": 0.72})
        candidate = the_candidate(a_mix(0.1, 0.7, variants=(variant,)), stated_or(one_rps))
        assert (candidate.rated_rps, candidate.surge_rps) == (0.63, 0.72)
        assert candidate.origin is Origin.GIVEN

    def test_a_surge_below_the_rated_rate_is_refused(self) -> None:
        with pytest.raises(ValidationError, match="rated 5 req/s above surge 4 req/s"):
            a_variant(capacity={"rated_rps": 5.0, "surge_rps": 4.0})

    def test_surge_never_falls_below_rated(self) -> None:
        """Who rates the service may know a smaller surge than the rated rate that the user states."""
        candidate = the_candidate(
            a_service(variants=(a_variant(capacity={"rated_rps": 5.0}),)), stated_or(one_rps)
        )
        assert candidate.rated_rps == 5.0
        assert candidate.surge_rps >= 5.0


class TestGuests:
    """A batch service on the replicas of an online one."""

    @staticmethod
    def a_guest(**fields: Any) -> Service:
        figures = {"kind": "batch", "shares_replicas_of": "chat", "variants": ()}
        return a_service("jobs", **(figures | {"buckets": (a_shape(input_tokens=LONG),)} | fields))

    def test_it_is_rated_with_its_own_traffic_up_to_tau(self) -> None:
        host = a_service(buckets=(a_shape(input_tokens=SHORT),))
        rate = by_input(short=a_rating(6), long=a_rating(2, surge_rps=3))
        assert the_candidate(host, rate, self.a_guest()).guest_surge_rps == {"jobs": 3}

    def test_it_is_rated_with_its_own_promise(self) -> None:
        host = a_service(slo={"ttft_s": 1.0})
        rate = rates({1.0: a_rating(6), 30.0: a_rating(9)}, lambda question: question.slo.ttft_s)
        guest = self.a_guest(slo={"ttft_s": 30.0})
        assert the_candidate(host, rate, guest).guest_surge_rps == {"jobs": 9}

    def test_without_a_rating_it_is_missing(self) -> None:
        host = a_service(buckets=(a_shape(input_tokens=SHORT),))
        rate = by_input(short=a_rating(6), long=Reason.REQUEST_DOES_NOT_FIT)
        problem = sized(a_scenario(services=(host, self.a_guest())), rate)
        assert problem.candidates[0].guest_surge_rps == {}
        assert problem.demand[self.a_guest().id].shares_replicas_of == "chat"

    def test_a_stated_rate_of_the_host_scales_its_guest(self) -> None:
        variant = a_variant(capacity={"rated_rps": 12.0, "surge_rps": 12.0})
        host = a_service(buckets=(a_shape(input_tokens=SHORT),), variants=(variant,))
        rate = stated_or(by_input(short=a_rating(6), long=a_rating(2)))
        assert the_candidate(host, rate, self.a_guest()).guest_surge_rps == {"jobs": pytest.approx(4.0)}

    def test_a_stated_rate_says_nothing_of_other_traffic(self) -> None:
        variant = a_variant(capacity={"rated_rps": 12.0})
        host = a_service(buckets=(a_shape(input_tokens=SHORT),), variants=(variant,))
        rate = stated_or(by_input(short=Reason.NO_MEASUREMENT, long=Reason.NO_MEASUREMENT))
        assert the_candidate(host, rate, self.a_guest()).guest_surge_rps == {}

    def test_a_stated_rate_holds_for_the_same_traffic(self) -> None:
        variant = a_variant(capacity={"rated_rps": 12.0, "surge_rps": 14.0})
        host = a_service(
            buckets=(a_shape("x", 5.0, input_tokens=LONG),), variants=(variant,), slo={"ttft_s": 1.0}
        )
        rate = stated_or(by_input(long=Reason.NO_MEASUREMENT))
        assert the_candidate(host, rate, self.a_guest()).guest_surge_rps == {"jobs": 14.0}
        guest = self.a_guest(slo={"ttft_s": 0.5})
        assert the_candidate(host, rate, guest).guest_surge_rps == {}

    def test_it_lives_under_the_thresholds_of_its_host(self) -> None:
        asked: list[float] = []

        def rate(question: RatingQuestion) -> Rating:
            asked.append(question.thresholds.tau_kv)
            return a_rating()

        the_candidate(a_service(thresholds={"tau_kv": 0.6}), rate, self.a_guest(thresholds={"tau_kv": 0.9}))
        assert set(asked) == {0.6}


def test_each_question_is_asked_once() -> None:
    asked: list[RatingQuestion] = []

    def rate(question: RatingQuestion) -> Rating:
        asked.append(question)
        return a_rating()

    nodes = tuple({"id": f"n{i}", "gpus": 8, "fabric_domain": f"d{i}"} for i in range(5))
    service = a_service(variants=(a_variant(parallelism={"tp": 2}, pods_per_replica=2),))
    scenario = a_scenario(
        services=(service,),
        pools=({"id": "east", "accelerator": "H100", "nodes": nodes, "offering": {"usd_per_h": 1}},),
    )
    assert len(sized(scenario, rate).candidates) == 5
    assert len(asked) == 1


def test_a_profile_that_a_variant_names_is_the_only_one_read() -> None:
    from planner.catalog import Catalog
    from planner.sizing import size
    from tests.scenarios import CATALOG

    point = {
        "llm": "llama-8b", "accelerator": "H100", "engine": "vllm", "precision": "bf16", "input_tokens": 1000,
        "output_tokens": 200, "concurrency": 4, "ttft_s": 0.1, "itl_s": 0.01, "source": "X",
    }  # fmt: skip
    from models.performance import MeasuredPoint

    profiles = {
        name: (MeasuredPoint.model_validate(point | {"rps": rps}),)
        for name, rps in (("slow", 1.0), ("fast", 9.0))
    }
    catalog = Catalog(CATALOG.accelerators, CATALOG.llms, profiles)
    variants = (a_variant("any"), a_variant("named", profile="slow"))
    problem = size(a_scenario(services=(a_service(variants=variants),)), catalog)
    assert {c.variant: c.rated_rps for c in problem.candidates} == pytest.approx({"any": 9.0, "named": 1.0})
