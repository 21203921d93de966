"""Steps in which an elastic deployment changes its size: told with their calls in every format, and written by none."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import pytest

from models.applied import ApplyEvent, ApplyEventKind
from models.elastic import ElasticEngine, LoadBalancing
from models.plan import Plan, Step, StepKind, Wave
from models.problem import Candidate, Problem, Resize
from planner.clock import FakeClock
from planner.control.carrying import CarryOut, carry_out
from planner.manifests import (
    Route,
    left_to_do,
    one_stream,
    render_kustomize,
    render_manifests,
    render_script,
    route_of,
)
from tests.builders import a_candidate
from tests.live_objects import LiveCluster, objects_of
from tests.rollouts import an_object, one_variant, undone

ADDRESS = "http://moe.example:8000"


def a_way(mode: str = "C", of: str = "chat/moe@east", **fields: Any) -> Resize:
    given = {
        "of": of, "mode": mode, "from_ranks": 16, "to_ranks": 20, "downtime_s": 0.82, "lead_s": 102.0,
        "idle_gpu_seconds": 0, "hindered_requests": 0, "moving_gpus": 20, "engine": ElasticEngine(), "url": ADDRESS,
    }  # fmt: skip
    return Resize.model_validate(given | fields)


def sizes(resize: Resize) -> tuple[Candidate, Candidate, Candidate]:
    """What runs, what it may become, and a further one; all of one object."""
    groups = an_object("moe", kind="LeaderWorkerSet")
    return (
        a_candidate(variant="moe", current=1, object=groups),
        a_candidate(variant=f"moe:16-20-{resize.mode.value}", object=groups, resize=resize),
        a_candidate(variant="moe:new", object=groups),
    )


def setting(resize: Resize) -> Problem:
    return one_variant(3, *sizes(resize))


def a_step(problem: Problem, name: str, kind: StepKind, counts: tuple[int, int], **fields: Any) -> Step:
    one = problem.candidate[name]  # type: ignore[index]
    return Step(
        kind=kind, pool=one.pool, candidate=one.id, service=one.service, variant=one.variant, count=1,
        before=counts[0], after=counts[1], resize=one.resize, **fields,
    )  # fmt: skip


def resized(problem: Problem, resize: Resize, *later: Step) -> Plan:
    """A wave that changes the size, and a wave of other steps after it."""
    name = f"chat/moe:16-20-{resize.mode.value}@east"
    sides = (
        a_step(problem, "chat/moe@east", StepKind.RESIZE, (1, 0)),
        a_step(problem, name, StepKind.RESIZE, (0, 1)),
    )
    waves = [Wave(steps=sides, duration_s=102.0), *([Wave(steps=later, duration_s=60.0)] if later else [])]
    return Plan(waves=tuple(waves))


def the_route(resize: Resize | None = None, *counts: int) -> Route:
    problem = setting(resize or a_way())
    later = [a_step(problem, "chat/small@east", StepKind.REMOVE, (3, 2))] if counts else []
    return route_of(problem, resized(problem, resize or a_way(), *later))


def texts(route: Route) -> dict[str, str]:
    return {
        "script": render_script(route),
        "yaml": render_manifests(route),
        "kustomize": one_stream(render_kustomize(route)),
    }


@pytest.mark.parametrize("name", ["script", "yaml", "kustomize"])
def test_each_format_tells_the_command_and_its_call(name: str) -> None:
    text = texts(the_route())[name]
    assert "1 × chat/moe@east from 16 to 20 ranks by C" in text
    assert "fleetplan elastic resize SCENARIO --variant chat/moe@east --to 20 --record FILE --yes" in text
    assert f"# curl -sS --max-time 900 -X POST {ADDRESS}/scale_elastic_ep" in text
    assert '{"new_data_parallel_size": 20}' in text
    assert "have accelerators under ranks 16 to 19 first" in text


@pytest.mark.parametrize("name", ["script", "yaml", "kustomize"])
def test_no_count_is_written_of_what_a_resize_sizes(name: str) -> None:
    """The count of its object is that of its groups, and one replica of the plan is many of them."""
    route = the_route()
    assert [change.target.object.name for change in route.ends] == ["chat-small"]
    assert "moe" not in texts(route)[name].replace("chat/moe", "").replace(ADDRESS, "")


def test_the_way_back_is_the_other_way_round() -> None:
    problem = setting(a_way())
    text = render_script(undone(problem, resized(problem, a_way())))
    assert "from 20 to 16 ranks" in text
    assert '{"new_data_parallel_size": 16}' in text
    assert "take requests from ranks 16 to 19 first" in text


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("redeploy", "launch it anew with 20 ranks, send its requests there, then end the old one"),
        ("restart", "stop it, and start it with 20 ranks"),
    ],
)
def test_what_no_call_does_is_told_without_one(mode: str, says: str) -> None:
    text = render_script(the_route(a_way(mode)))
    assert says in text
    assert "curl" not in text


def test_with_a_server_for_each_rank_the_others_are_told_of() -> None:
    engine = ElasticEngine(load_balancing=LoadBalancing.EXTERNAL, data_parallel_backend="mp")
    assert "each other of the 16 ranks, all at once" in render_script(the_route(a_way(engine=engine)))


def test_without_an_address_the_command_asks_for_one() -> None:
    text = render_script(the_route(a_way(url=None)))
    assert "--to 20 --url URL --record FILE" in text
    assert "http://ADDRESS:8000/scale_elastic_ep" in text


def test_an_address_cannot_leave_its_comment() -> None:
    evil = "http://x/\nrm -rf /"
    lines = render_script(the_route(a_way(url=evil))).splitlines()
    assert not any(line.startswith("rm") for line in lines)


def test_the_script_goes_on_only_when_somebody_says_that_it_is_done() -> None:
    script = render_script(the_route(None, 2))
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0  # noqa: S607
    second = script.partition("if begin 2; then")[2]
    assert second.strip().startswith("confirmed 1 'chat/moe@east at 20 ranks'")


@pytest.mark.parametrize("kind", [StepKind.REMOVE, StepKind.START])
def test_apply_writes_nothing_of_it_and_goes_on_when_somebody_says_that_it_is_done(kind: StepKind) -> None:
    problem = setting(a_way())
    after = 2 if kind is StepKind.REMOVE else 4
    route = route_of(problem, resized(problem, a_way(), a_step(problem, "chat/small@east", kind, (3, after))))
    assert [line for line in left_to_do(route) if "fleetplan elastic resize" in line]
    clock = FakeClock(1e9)
    cluster = LiveCluster(objects_of(route), clock)
    told: list[ApplyEvent] = []
    how = CarryOut(apis={"": cluster.api}, clock=clock, note=told.append)
    assert carry_out(route, how) is ApplyEventKind.REFUSED
    assert "chat/moe@east at 20 ranks (see to it, then say --assume-done)" in told[-1].message
    assert not [event for event in told if event.kind is ApplyEventKind.WROTE]
    assert carry_out(route, replace(how, assume_done=True)) is ApplyEventKind.DONE
    assert cluster.wanted("chat-small") == after
    assert {event.object for event in told if event.kind is ApplyEventKind.WROTE} == {
        "Deployment llm/chat-small"
    }
