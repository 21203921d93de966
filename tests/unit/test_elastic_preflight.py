"""Preflight of a resize: each thing that would make it fail is refused with what to change, all of them at once."""

from __future__ import annotations

from typing import Any

import pytest

from models.elastic import Dialect, ElasticDeployment, ElasticEngine, ElasticShape, LoadBalancing
from models.resizing import PreflightCheck, SizeReason, SizeRefusal
from models.resizing import PreflightVerdict as Verdict
from planner.elastic import Room
from planner.elastic.preflight import _TEXTS, PreflightFacts, PreflightQuestion, preflight, refusal_text

SHAPE = ElasticShape(experts=384, launch_ranks=16, max_ranks=20)
GOOD = ElasticEngine(guarded=True, drains=True)
KNOWN = PreflightFacts(in_flight=False, router_drains=True, room=Room([4]))


def look(
    name: str,
    engine: ElasticEngine = GOOD,
    *,
    sizes: tuple[int, int] = (16, 20),
    facts: PreflightFacts = KNOWN,
    shape: ElasticShape = SHAPE,
    **deployment: Any,
) -> PreflightCheck:
    question = PreflightQuestion(
        deployment=ElasticDeployment(engine=engine, **deployment),
        shape=shape,
        current=sizes[0],
        wanted=sizes[1],
        facts=facts,
    )
    return next(each for each in preflight(question).checks if each.name == name)


def test_a_sound_deployment_passes_every_check() -> None:
    question = PreflightQuestion(
        deployment=ElasticDeployment(engine=GOOD), shape=SHAPE, current=16, wanted=20, facts=KNOWN
    )
    found = preflight(question)
    assert found.passed
    assert {each.verdict for each in found.checks} == {Verdict.OK}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"elastic": False}, "--enable-elastic-ep"),
        ({"expert_parallel": False}, "--enable-expert-parallel"),
        ({"eplb": False}, "--enable-eplb"),
        ({"pipeline_parallel": 2}, "--pipeline-parallel-size 1"),
        ({"dual_batch_overlap": True}, "no --enable-dbo"),
        ({"draft_model": True}, "no draft model"),
        ({"nixl": False}, "--eplb-config.use_async false"),
        ({"eplb_communicator": "pynccl"}, "--eplb-config.use_async false"),
    ],
)
def test_each_wrong_flag_is_refused_with_the_right_one(change: dict[str, Any], says: str) -> None:
    found = look("flags", GOOD.but(**change))
    assert found.verdict is Verdict.REFUSED
    assert says in found.change


def test_all_wrong_flags_are_told_at_once() -> None:
    found = look("flags", GOOD.but(eplb=False, expert_parallel=False, pipeline_parallel=2))
    assert found.change.count("--") == 3
    assert look("flags", GOOD, shape=SHAPE.but(max_ranks=12)).verdict is Verdict.REFUSED


@pytest.mark.parametrize(
    ("version", "allowed", "verdict"),
    [
        ("0.33.0", False, Verdict.OK),
        ("0.30.0", False, Verdict.OK),
        ("0.27.1", False, Verdict.REFUSED),
        ("0.27.1", True, Verdict.WARNING),
        ("0.29.0", False, Verdict.REFUSED),
        ("0.23.0", True, Verdict.REFUSED),
        ("0.10.0", True, Verdict.REFUSED),
    ],
)
def test_old_versions_are_resized_by_name_alone(version: str, *, allowed: bool, verdict: Verdict) -> None:
    found = look("version", GOOD.but(version=version), allow_old_version=allowed)
    assert found.verdict is verdict
    assert bool(found.change) == (verdict is Verdict.REFUSED)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, Verdict.OK),
        ({"load_balancing": LoadBalancing.HYBRID}, Verdict.REFUSED),
        ({"load_balancing": LoadBalancing.EXTERNAL, "data_parallel_backend": "mp"}, Verdict.OK),
        ({"load_balancing": LoadBalancing.EXTERNAL, "version": "0.32.0"}, Verdict.REFUSED),
        ({"data_parallel_backend": "mp"}, Verdict.REFUSED),
        ({"api_servers": 4}, Verdict.WARNING),
        ({"dialect": Dialect.DYNAMO, "load_balancing": LoadBalancing.EXTERNAL}, Verdict.REFUSED),
        ({"dialect": Dialect.SGLANG, "version": "0.5.23"}, Verdict.OK),
    ],
)
def test_who_spreads_requests_decides_whether_it_can_be_resized(
    change: dict[str, Any], verdict: Verdict
) -> None:
    assert look("load balancing", GOOD.but(**change)).verdict is verdict


@pytest.mark.parametrize(
    ("shape", "sizes", "says"),
    [
        (SHAPE, (16, 24), "--elastic-ep-max-dp-size 24"),
        (SHAPE.but(max_ranks=None), (16, 20), "--elastic-ep-max-dp-size 20"),
        (SHAPE, (16, 12), "--eplb-config.num_redundant_experts 128"),
        (ElasticShape(experts=256, launch_ranks=16, max_ranks=24), (16, 15), "num_redundant_experts 32"),
    ],
)
def test_a_size_out_of_reach_says_how_to_launch_to_reach_it(
    shape: ElasticShape, sizes: tuple[int, int], says: str
) -> None:
    found = look("size", shape=shape, sizes=sizes, facts=PreflightFacts())
    assert found.verdict is Verdict.REFUSED
    assert says in found.change


def test_the_copies_that_a_refusal_names_do_reach_the_size() -> None:
    for experts, launch, wanted in ((384, 16, 12), (256, 16, 15), (160, 8, 5), (128, 8, 3)):
        shape = ElasticShape(experts=experts, launch_ranks=launch, max_ranks=64)
        found = look("size", shape=shape, sizes=(launch, wanted), facts=PreflightFacts())
        copies = int(found.change.split("num_redundant_experts ")[1].split(";")[0])
        again = look(
            "size", shape=shape.but(redundant_experts=copies), sizes=(launch, wanted), facts=PreflightFacts()
        )
        assert again.verdict is Verdict.OK


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (PreflightFacts(room=Room([4])), Verdict.OK),
        (PreflightFacts(room=Room([3], [8])), Verdict.REFUSED),
        (PreflightFacts(), Verdict.UNKNOWN),
    ],
)
def test_joiners_need_room(facts: PreflightFacts, verdict: Verdict) -> None:
    assert look("accelerators", facts=facts).verdict is verdict


@pytest.mark.parametrize(
    ("engine", "facts", "verdict"),
    [
        (GOOD, PreflightFacts(), Verdict.OK),
        (
            GOOD.but(all2all_backend="deepep_low_latency"),
            PreflightFacts(free_memory_gb=4, buffers_gb=2),
            Verdict.OK,
        ),
        (
            GOOD.but(all2all_backend="deepep_low_latency"),
            PreflightFacts(free_memory_gb=1, buffers_gb=2),
            Verdict.REFUSED,
        ),
        (
            GOOD.but(all2all_backend="deepep_v2", memory_utilization=0.95),
            PreflightFacts(),
            Verdict.WARNING,
        ),
        (GOOD.but(all2all_backend="deepep_v2"), PreflightFacts(), Verdict.UNKNOWN),
    ],
)
def test_backends_with_fixed_members_hold_both_buffers(
    engine: ElasticEngine, facts: PreflightFacts, verdict: Verdict
) -> None:
    assert look("transient memory", engine, facts=facts).verdict is verdict


def test_an_operation_in_flight_is_not_joined_by_another() -> None:
    assert look("operation in flight", facts=PreflightFacts(in_flight=True)).verdict is Verdict.REFUSED
    unseen = look("operation in flight", GOOD.but(version="0.32.0"), facts=PreflightFacts())
    assert unseen.verdict is Verdict.UNKNOWN
    assert "shows nowhere" in unseen.finding


def test_an_open_endpoint_and_requests_on_leaving_ranks_are_warned_of() -> None:
    open_engine = ElasticEngine()
    assert look("open endpoint", open_engine).verdict is Verdict.WARNING
    down, undrained = (20, 18), PreflightFacts(router_drains=False)
    assert look("draining", open_engine, sizes=down, facts=undrained).verdict is Verdict.WARNING
    assert look("draining", open_engine, sizes=down).verdict is Verdict.OK
    assert look("draining", open_engine, sizes=(16, 20), facts=undrained).verdict is Verdict.OK


def test_every_reason_against_a_size_has_a_sentence() -> None:
    assert set(_TEXTS) == set(SizeReason)
    facts = dict.fromkeys(
        [
            "experts",
            "redundant_experts",
            "ep_size",
            "floor",
            "launch_ranks",
            "maximum",
            "cap",
            "version",
            "current",
            "group",
            "joiners",
            "seats",
            "seats_elsewhere",
            "gpus_per_rank",
        ],
        7,
    )
    for reason in SizeReason:
        assert refusal_text(SizeRefusal(reason=reason, facts=facts)).endswith(".")
