"""The script: it is run by a real shell with a kubectl that only writes down what it was asked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from models.plan import StepKind
from models.problem import Problem
from planner.errors import ConfigurationError
from planner.manifests import Route, left_to_do, render_script, route_of
from planner.manifests.script import CONTROL_S, drain_limit_s, timeout_s
from tests.builders import a_candidate, a_demand, a_pool, a_problem
from tests.rollouts import (
    a_fleet,
    a_fleet_plan,
    a_plan,
    a_route,
    a_stuck,
    a_way_back,
    an_object,
    one_variant,
    undone,
)

EAST = "chat/small@east"
# A cluster in which everything is as the script waits for, unless a variable says otherwise.
RECORDER = """#!/bin/sh
{ for argument in "$@"; do printf '%s\\0' "$argument"; done; printf '\\n'; } >> "$RECORD"
case "$*" in
  *"$FAIL_ON"*) exit 1 ;;
  *former-bounds}*) printf %s "${BOUNDS:-}" ;;
  *former-pause}*) printf %s "${PAUSE:-}" ;;
  *paused-replicas}*) printf %s "${PAUSED_AT:-}" ;;
  *spec.minReplicas*) printf %s 1:8 ;;
  *status.readyReplicas}) printf %s "${READY:-99}" ;;
  *status.selector}) printf %s "${SELECTOR-app=chat-small}" ;;
  *terminationGracePeriodSeconds*) printf %s 30 ;;
  *spec.replicas}) printf %s "${ASKED:-}" ;;
  *status.replicas}) printf %s "${REPLICAS:-}" ;;
  *"get pods"*) for pod in ${PODS:-}; do echo "$pod"; done ;;
esac
"""
# Time passes by the calls, so that no test waits.
CLOCK = """#!/bin/sh
now=$(cat "$RECORD.clock" 2>/dev/null || echo 0)
echo $((now + 100)) | tee "$RECORD.clock"
"""
BASH = "/bin/bash"


@dataclass(frozen=True)
class Run:
    """How a script ended."""

    code: int
    asked: list[list[str]]
    out: str
    err: str

    @property
    def changes(self) -> list[list[str]]:
        """Calls of kubectl that are more than a look."""
        return [call for call in self.asked if "get" not in call]


def carried_out(
    script: str, folder: Path, *arguments: str, fail_on: str = "no such thing", **variables: str
) -> Run:
    """Run a script, with a kubectl that answers as the variables say and a clock that hurries."""
    record = folder / "record"
    for name, text in (("kubectl", RECORDER), ("date", CLOCK)):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    record.write_text("", encoding="utf-8")
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(record), "FAIL_ON": fail_on,
                   "POLL_S": "0"}  # fmt: skip
    done = subprocess.run(
        ["/bin/sh", "-s", "--", *arguments], input=script.encode(), env=environment | variables,
        capture_output=True, check=False,
    )  # fmt: skip
    calls = [line.split("\0")[:-1] for line in record.read_text(encoding="utf-8").splitlines()]
    return Run(done.returncode, calls, done.stdout.decode(), done.stderr.decode())


def run(script: str, folder: Path, *, fail_on: str = "no such thing") -> tuple[int, list[list[str]]]:
    """Exit code, and the arguments of each call of kubectl that is more than a look."""
    done = carried_out(script, folder, fail_on=fail_on)
    return done.code, done.changes


def calls_of(route: Route, folder: Path) -> list[list[str]]:
    code, calls = run(render_script(route), folder)
    assert code == 0
    return calls


def verbs(calls: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join(call[2:4]) for call in calls]


def a_patch(bounds: int, former: str = "1:8") -> list[str]:
    metadata = {"annotations": {"fleetplan.dev/former-bounds": former}}
    spec = {"minReplicas": bounds, "maxReplicas": bounds}
    return ["--type=merge", "-p", json.dumps({"metadata": metadata, "spec": spec})]


READY = ["-n", "llm", "rollout", "status", "deployment/chat-small", "--timeout=240s"]
LWS = "leaderworkerset.leaderworkerset.x-k8s.io/chat-small"
PAUSED = "autoscaling.keda.sh/paused-replicas"
UNPAUSED = "fleetplan.dev/former-pause=none"


def scaled(resource: str, old: int, new: int) -> list[str]:
    return ["-n", "llm", "scale", resource, f"--current-replicas={old}", f"--replicas={new}"]


def asked(count: int) -> list[str]:
    return [
        "-n",
        "llm",
        "wait",
        "deployment/chat-small",
        f"--for=jsonpath={{.spec.replicas}}={count}",
        "--timeout=120s",
    ]


@pytest.mark.parametrize(
    ("fields", "old", "new", "calls"),
    [
        ({}, 3, 5, [scaled("deployment/chat-small", 3, 5), READY]),
        ({}, 5, 3, [scaled("deployment/chat-small", 5, 3)]),
        ({}, 0, 1, [scaled("deployment/chat-small", 0, 1), READY]),
        ({"kind": "StatefulSet"}, 2, 0, [scaled("statefulset/chat-small", 2, 0)]),
        ({"kind": "LeaderWorkerSet"}, 1, 2, [
            scaled(LWS, 1, 2),
            ["-n", "llm", "wait", LWS, "--for=jsonpath={.status.readyReplicas}=2", "--timeout=240s"],
        ]),
        ({"kind": "LeaderWorkerSet", "api_version": "x.example.com/v2"}, 2, 1, [
            scaled("leaderworkerset.v2.x.example.com/chat-small", 2, 1)
        ]),
        ({"scaler": "hpa"}, 3, 5, [["-n", "llm", "patch", "hpa/chat-small", *a_patch(5)], asked(5), READY]),
        ({"scaler": "hpa"}, 5, 3, [["-n", "llm", "patch", "hpa/chat-small", *a_patch(3)], asked(3)]),
        ({"scaler": "hpa"}, 3, 0, [
            ["-n", "llm", "patch", "hpa/chat-small", *a_patch(3)], scaled("deployment/chat-small", 3, 0)
        ]),
        ({"scaler": "hpa"}, 0, 2, [
            ["-n", "llm", "patch", "hpa/chat-small", *a_patch(2)], scaled("deployment/chat-small", 0, 2), READY
        ]),
        ({"scaler": "keda", "scaler_name": "so"}, 0, 2, [
            ["-n", "llm", "annotate", "scaledobject.keda.sh/so", "--overwrite", f"{PAUSED}=2", UNPAUSED], asked(2), READY
        ]),
        ({"scaler": "keda", "scaler_name": "so"}, 2, 0, [
            ["-n", "llm", "annotate", "scaledobject.keda.sh/so", "--overwrite", f"{PAUSED}=0", UNPAUSED], asked(0)
        ]),
        ({"scaler": "variantautoscaling"}, 2, 4, [
            ["-n", "llm", "annotate", "variantautoscaling.llmd.ai/chat-small", "--overwrite", "llm-d.ai/managed=true",
             "llm-d.ai/model-id=llama-8b", "llm-d.ai/variant-cost=1.0"]
        ]),
    ],
)  # fmt: skip
def test_each_scaler_is_told_the_count_in_its_own_way(
    tmp_path: Path, fields: dict[str, Any], old: int, new: int, calls: list[list[str]]
) -> None:
    assert calls_of(a_route(one_variant(old, **fields), {EAST: new}), tmp_path) == calls


@pytest.mark.parametrize("fields", [{}, {"kind": "StatefulSet"}, {"scaler": "hpa"}, {"scaler": "keda"}])
@pytest.mark.parametrize(("old", "new"), [(3, 5), (5, 3), (3, 0), (0, 3)])
def test_the_way_back_is_the_way_there_from_the_other_end_and_frees_scalers(
    tmp_path: Path, fields: dict[str, Any], old: int, new: int
) -> None:
    script = render_script(a_way_back(one_variant(old, **fields), {EAST: new}))
    back = carried_out(script, tmp_path, BOUNDS="2:9", PAUSE="none")
    there = calls_of(a_route(one_variant(new, **fields), {EAST: old}), tmp_path)
    freed = {"hpa": [FREED], "keda": [RESUMED]}.get(fields.get("scaler", ""), [])
    assert back.code == 0
    assert list(map(without_record, back.changes)) == [*map(without_record, there), *freed]


def without_record(call: list[str]) -> list[str]:
    """A call that holds a scaler, but for the record of what it had."""
    if "patch" in call and 'former-bounds": null' not in call[-1]:
        return [*call[:-1], str(json.loads(call[-1])["spec"])]
    return [word for word in call if word != UNPAUSED]


FREED = ["-n", "llm", "patch", "hpa/chat-small", "--type=merge", "-p",
         '{"metadata": {"annotations": {"fleetplan.dev/former-bounds": null}}, '
         '"spec": {"minReplicas": 2, "maxReplicas": 9}}']  # fmt: skip
RESUMED = [
    "-n", "llm", "annotate", "scaledobject.keda.sh/chat-small", f"{PAUSED}-", "fleetplan.dev/former-pause-"
]  # fmt: skip


@pytest.mark.parametrize("record", ["", "8", ":8", "2:", "1:2:3", "1:8; reboot"])
def test_an_hpa_without_a_record_stays_held_and_is_named(tmp_path: Path, record: str) -> None:
    script = render_script(a_way_back(one_variant(3, scaler="hpa"), {EAST: 5}))
    done = carried_out(script, tmp_path, BOUNDS=record)
    assert (done.code, len([call for call in done.changes if "patch" in call])) == (3, 1)
    assert "hpa/chat-small has" in done.err
    assert "Write them back by hand." in done.err


def test_a_scaled_object_without_a_record_stays_paused_and_is_named(tmp_path: Path) -> None:
    script = render_script(a_way_back(one_variant(3, scaler="keda"), {EAST: 5}))
    done = carried_out(script, tmp_path)
    assert done.code == 3
    assert f"By hand: kubectl -n llm annotate scaledobject.keda.sh/chat-small {PAUSED}-" in done.err


def test_what_a_scaler_had_first_is_kept_through_every_wave_and_plan(tmp_path: Path) -> None:
    script = render_script(a_route(one_variant(3, scaler="hpa"), {EAST: 5}))
    patches = [call for call in carried_out(script, tmp_path, BOUNDS="2:4").changes if "patch" in call]
    assert [call[4:] for call in patches] == [a_patch(5, "2:4")]
    script = render_script(a_route(one_variant(3, scaler="keda"), {EAST: 5}))
    for variables, former in (({"PAUSED_AT": "7"}, "7"), ({"PAUSED_AT": "5", "PAUSE": "none"}, "none")):
        done = carried_out(script, tmp_path, **variables)
        assert f"fleetplan.dev/former-pause={former}" in done.changes[0]


def test_a_scaled_object_that_was_paused_before_is_paused_as_before(tmp_path: Path) -> None:
    script = render_script(a_way_back(one_variant(3, scaler="keda"), {EAST: 5}))
    done = carried_out(script, tmp_path, PAUSE="7")
    assert (done.code, done.changes[-1][4:]) == (
        0, ["--overwrite", f"{PAUSED}=7", "fleetplan.dev/former-pause-"]
    )  # fmt: skip


def test_the_way_back_leaves_the_metadata_of_a_variant_autoscaling(tmp_path: Path) -> None:
    route = a_way_back(one_variant(2, scaler="variantautoscaling"), {EAST: 4})
    assert calls_of(route, tmp_path) == []
    assert 'wva_desired_replicas{variant_name="chat-small",namespace="llm",accelerator_type="H100"} 2' in (
        render_script(route)
    )


def test_waves_are_in_order_and_the_next_one_waits(tmp_path: Path) -> None:
    calls = calls_of(a_route(one_variant(1), {EAST: 2}, {EAST: 4}, {EAST: 3}), tmp_path)
    assert verbs(calls) == [
        "scale deployment/chat-small", "rollout status", "scale deployment/chat-small", "rollout status",
        "scale deployment/chat-small",
    ]  # fmt: skip
    assert [call[-1] for call in calls if call[2] == "scale"] == [
        "--replicas=2",
        "--replicas=4",
        "--replicas=3",
    ]


def test_all_counts_of_a_wave_are_written_before_anything_is_awaited(tmp_path: Path) -> None:
    large = a_candidate(variant="large", pool="west", current=1, object=an_object("chat-large"))
    calls = calls_of(a_route(one_variant(1, large), {EAST: 2, large.id: 2}), tmp_path)
    assert [call[2] for call in calls] == ["scale", "scale", "rollout", "rollout"]


@pytest.mark.parametrize("fail_on", ["scale deployment", "rollout"])
def test_a_script_stops_where_something_fails(tmp_path: Path, fail_on: str) -> None:
    code, calls = run(render_script(a_route(one_variant(1), {EAST: 2}, {EAST: 3})), tmp_path, fail_on=fail_on)
    assert code != 0
    assert len(calls) == ["scale deployment", "rollout"].index(fail_on) + 1


def test_places_of_one_object_are_summed_and_a_swap_is_no_command(tmp_path: Path) -> None:
    west = a_candidate(pool="west", current=1, object=an_object())
    route = a_route(one_variant(3, west), {EAST: 4}, {EAST: 3, west.id: 2})
    assert [call[4:] for call in calls_of(route, tmp_path) if call[2] == "scale"] == [
        ["--current-replicas=4", "--replicas=5"]
    ]
    script = render_script(route)
    assert "one count cannot say how many go where" in script
    assert "stays at 5 replicas (meant for east 4 to 3, west 1 to 2)" in script
    assert "No command moves replicas between the places of one object." in script


def test_what_is_on_order_counts_as_there_and_can_be_awaited(tmp_path: Path) -> None:
    problem = a_problem(candidates=(a_candidate(current=1, pending=2, startup_s=90.0, object=an_object()),))
    plan = a_plan(problem, {EAST: 4})
    wave, start = plan.waves[0], plan.waves[0].steps[0]
    awaited = start.but(kind=StepKind.AWAIT, count=2, before=3, after=3)
    assert start.before == 3
    waiting = plan.but(waves=(wave.but(steps=(awaited,)), wave))
    assert calls_of(route_of(problem, waiting), tmp_path) == [READY, scaled("deployment/chat-small", 3, 4),
                                                             [*READY[:-1], "--timeout=330s"]]  # fmt: skip


def test_a_drain_is_no_command_and_its_removal_is_one(tmp_path: Path) -> None:
    plan = a_plan(one_variant(3), {EAST: 2})
    (remove,) = plan.waves[0].steps
    drain = remove.but(kind=StepKind.DRAIN, before=3, after=3)
    wave = plan.waves[0].but(steps=(drain, remove))
    route = route_of(one_variant(3), plan.but(waves=(wave,)))
    assert calls_of(route, tmp_path) == [scaled("deployment/chat-small", 3, 2)]


def test_time_limits_grow_with_start_up_and_the_wave_before() -> None:
    change = a_route(one_variant(1), {EAST: 2}).stages[0].changes[0]
    assert (timeout_s(change, 0.0), timeout_s(change, 30.5)) == (240, 271)


def two_clusters() -> tuple[Problem, Mapping[str, int]]:
    west = a_candidate(pool="west", current=1, object=an_object())
    problem = one_variant(1, west)
    pools = (problem.pools[0].but(cluster="eu"), problem.pools[1].but(cluster="us"))
    return problem.but(pools=pools), {EAST: 2, west.id: 0}


def test_objects_of_several_clusters_are_told_apart_by_context(tmp_path: Path) -> None:
    problem, counts = two_clusters()
    calls = calls_of(a_route(problem, counts), tmp_path)
    assert [call[:2] for call in calls] == [["--context", "eu"], ["--context", "us"], ["--context", "eu"]]


def test_one_cluster_of_several_can_be_chosen(tmp_path: Path) -> None:
    problem, counts = two_clusters()
    assert calls_of(a_route(problem, counts).in_cluster("us"), tmp_path) == [
        scaled("deployment/chat-small", 1, 0)
    ]


def test_a_cluster_that_no_object_is_in_is_refused() -> None:
    problem, counts = two_clusters()
    with pytest.raises(ConfigurationError, match="'uk'; allowed: eu, us"):
        a_route(problem, counts).in_cluster("uk")


def test_what_has_no_object_is_listed_and_left_out() -> None:
    bare = a_candidate(variant="bare", pool="west", current=1)
    idle = a_candidate(variant="idle", pool="west")
    route = a_route(one_variant(1, bare, idle), {EAST: 2, bare.id: 2})
    assert route.left_out == ("chat/bare",)
    script = render_script(route)
    assert "# Left out, for want of an object in the scenario: chat/bare." in script
    assert (
        "echo 'Not done here, for want of an object: chat/bare in pool west, from 1 to 2 replicas.' >&2"
        in script
    )


def test_a_fleet_without_any_object_is_refused() -> None:
    problem = a_problem(candidates=(a_candidate(current=1),))
    with pytest.raises(ConfigurationError, match="no object in chat/small"):
        a_route(problem, {EAST: 2})


def test_nothing_to_do_is_said(tmp_path: Path) -> None:
    route = a_route(one_variant(2))
    assert calls_of(route, tmp_path) == []
    assert "There is no count to change." in render_script(route)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "break a rule (pool east holds 18 of 16 GPUs). What would do: 2 GPUs more in pool east."),
        (
            {"drop": {"chat": 0.1}, "violations": ()},
            "is reached. What would do: 2 GPUs more in pool east, or 10 % less of chat served for a while.",
        ),
        ({"extra_gpus": {}, "violations": ()}, "The waves end before the solution is reached."),
    ],
)
def test_a_plan_that_ends_early_says_so(fields: dict[str, Any], said: str) -> None:
    script = render_script(a_route(one_variant(1), {EAST: 2}, stuck=a_stuck(**fields)))
    assert any(line.endswith(f"{said} Every order was tried.") for line in script.splitlines())


@pytest.mark.parametrize("name", ["a\nreboot", "a\r\u2028reboot", "'; reboot #", "$(reboot)", "`reboot`"])
def test_no_text_leaves_its_comment(tmp_path: Path, name: str) -> None:
    problem = one_variant(1).but(name=name)
    script = render_script(a_route(problem, {EAST: 2}, stuck=a_stuck(violations=(
        a_stuck().violations[0].but(text=name),))))  # fmt: skip
    harmless = render_script(a_route(problem.but(name="a"), {EAST: 2})).splitlines()
    others = [line for line in script.splitlines() if line not in harmless]
    assert all(line.startswith("# ") for line in others)
    assert verbs(run(script, tmp_path)[1]) == ["scale deployment/chat-small", "rollout status"]


@pytest.mark.parametrize("llm", ["a#b", "a@b:c", "Meta/Llama+3.1"])
def test_words_reach_kubectl_as_they_are(tmp_path: Path, llm: str) -> None:
    problem = one_variant(1, scaler="variantautoscaling").but(demands=(a_demand(llm=llm),))
    (call,) = calls_of(a_route(problem, {EAST: 2}), tmp_path)
    assert f"llm-d.ai/model-id={llm}" in call


def test_a_hostile_context_is_one_word(tmp_path: Path) -> None:
    problem, counts = two_clusters()
    pools = (problem.pools[0].but(cluster="a#b@c:d"), problem.pools[1])
    calls = calls_of(a_route(problem.but(pools=pools), counts), tmp_path)
    assert calls[0][:2] == ["--context", "a#b@c:d"]


@pytest.mark.parametrize("way", ["there", "back"])
def test_the_shell_reads_every_script(way: str) -> None:
    plan = a_fleet_plan()
    script = render_script(route_of(a_fleet(), plan) if way == "there" else undone(a_fleet(), plan))
    subprocess.run([BASH, "-n"], input=script.encode(), check=True)
    subprocess.run(["/bin/sh", "-n"], input=script.encode(), check=True)


def test_nodes_are_no_business_of_the_script() -> None:
    script = render_script(route_of(a_fleet(), a_fleet_plan()))
    assert "echo 'Not done here: the nodes added to pool west, from 0 to 1 node.' >&2" in script
    assert a_pool("west").id in script


def a_move(**fields: Any) -> Route:
    """The replacement starts, then what it replaces goes."""
    old = a_candidate(variant="old", current=2, startup_s=90.0, object=an_object("chat-old"))
    return a_route(one_variant(0, old, **fields), {EAST: 2}, {old.id: 0})


@pytest.mark.parametrize(
    ("fields", "variables", "fail_on", "said"),
    [
        (
            {"scaler": "variantautoscaling"},
            {"READY": "1"},
            "nothing",
            "did the control plane emit its gauge?",
        ),
        ({}, {}, "rollout", "has not 2 ready replicas in 240 s"),
        ({"kind": "LeaderWorkerSet"}, {}, "readyReplicas", "has not 2 ready replicas in 240 s"),
        ({"scaler": "keda"}, {}, "spec.replicas", "does not ask for 2 replicas"),
    ],
)
def test_nothing_is_drained_before_its_replacement_is_ready(
    tmp_path: Path, fields: dict[str, Any], variables: dict[str, str], fail_on: str, said: str
) -> None:
    done = carried_out(render_script(a_move(**fields)), tmp_path, fail_on=fail_on, **variables)
    assert done.code == 1
    assert not [call for call in done.changes if "deployment/chat-old" in call]
    assert said in done.err
    assert "stopped in wave 1 of 2" in done.err
    assert "Go on with FROM_WAVE=1." in done.err


def test_what_a_control_plane_starts_is_awaited_and_its_gauge_named(tmp_path: Path) -> None:
    done = carried_out(render_script(a_move(scaler="variantautoscaling")), tmp_path, READY="2")
    assert done.code == 0
    assert scaled("deployment/chat-old", 2, 0) in done.changes
    assert 'the control plane has to emit wva_desired_replicas{variant_name="chat-small"' in done.out


def a_move_to_what_has_no_object() -> Route:
    bare = a_candidate(variant="bare", pool="west")
    return a_route(one_variant(2, bare), {bare.id: 2}, {EAST: 1}, {EAST: 0})


def test_what_the_script_cannot_start_is_asked_for_before_anything_is_drained(tmp_path: Path) -> None:
    script = render_script(a_move_to_what_has_no_object())
    done = carried_out(script, tmp_path)
    assert (done.code, done.changes) == (5, [])
    assert "chat/bare in pool west from 0 to 2 replicas" in done.err
    assert "set CONFIRMED_1=1. Go on with FROM_WAVE=2." in done.err
    wanted = [scaled("deployment/chat-small", 2, 1), scaled("deployment/chat-small", 1, 0)]
    assert carried_out(script, tmp_path, CONFIRMED_1="1", FROM_WAVE="2").changes == wanted
    assert carried_out(script, tmp_path, "--assume-done").changes == wanted
    assert carried_out(script, tmp_path, CONFIRMED_1="0", CONFIRMED_2="1").code == 5


def test_an_unknown_argument_changes_nothing(tmp_path: Path) -> None:
    done = carried_out(render_script(a_route(one_variant(1), {EAST: 2})), tmp_path, "--assume-don")
    assert (done.code, done.asked) == (64, [])


def test_starts_in_another_cluster_are_asked_for_before_anything_is_drained(tmp_path: Path) -> None:
    west = a_candidate(pool="west", object=an_object())
    problem = one_variant(1, west)
    pools = (problem.pools[0].but(cluster="eu"), problem.pools[1].but(cluster="us"))
    route = a_route(problem.but(pools=pools), {west.id: 1}, {EAST: 0})
    done = carried_out(render_script(route.in_cluster("eu")), tmp_path)
    assert (done.code, done.changes) == (5, [])
    assert "from 0 to 1 replica in us" in done.err


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PODS": "one two"}, "beyond 1 replicas are not gone in time"),
        ({"REPLICAS": "2"}, "beyond 1 replicas are not gone in time"),
        ({"SELECTOR": ""}, "does not say which pods are its own"),
    ],
)
@pytest.mark.parametrize(
    "fields", [{}, {"kind": "StatefulSet"}, {"scaler": "hpa"}, {"scaler": "variantautoscaling"}]
)
def test_the_next_wave_waits_until_pods_are_gone(
    tmp_path: Path, fields: dict[str, Any], variables: dict[str, str], said: str
) -> None:
    late = a_candidate(variant="late", startup_s=90.0, object=an_object("chat-late"))
    script = render_script(a_route(one_variant(2, late, **fields), {EAST: 1}, {late.id: 1}))
    assert carried_out(script, tmp_path).changes[-2] == scaled("deployment/chat-late", 0, 1)
    done = carried_out(script, tmp_path, **variables)
    assert done.code == 1
    assert not [call for call in done.changes if "deployment/chat-late" in call]
    assert said in done.err


def test_pods_that_are_ending_are_found_by_the_selector_of_their_object(tmp_path: Path) -> None:
    done = carried_out(render_script(a_route(one_variant(2), {EAST: 1})), tmp_path, PODS="one")
    (looked,) = [call for call in done.asked if "pods" in call]
    assert looked[2:6] == ["get", "pods", "-l", "app=chat-small"]
    assert (done.code, ["--subresource=scale" in call for call in done.asked].count(True)) == (0, 1)


@pytest.mark.parametrize(("pods", "code"), [("a b c d", 0), ("a b c d e", 1)])
def test_a_group_is_gone_with_its_last_pod(tmp_path: Path, pods: str, code: int) -> None:
    group = a_candidate(current=2, pods_per_replica=4, object=an_object(kind="LeaderWorkerSet"))
    done = carried_out(
        render_script(a_route(a_problem(candidates=(group,)), {group.id: 1})), tmp_path, PODS=pods
    )
    assert done.code == code
    assert any("leaderworkerset.sigs.k8s.io/name=chat-small" in call for call in done.asked)


def test_a_script_goes_on_where_it_stopped_and_writes_no_count_twice(tmp_path: Path) -> None:
    script = render_script(a_route(one_variant(1), {EAST: 2}, {EAST: 3}))
    assert carried_out(script, tmp_path, fail_on="rollout").code == 1
    done = carried_out(script, tmp_path, FROM_WAVE="2", ASKED="3")
    assert (done.code, verbs(done.changes), done.out) == (0, ["rollout status"], "wave 2 of 2\n")


def test_limits_for_what_goes() -> None:
    change = a_route(one_variant(2), {EAST: 1}).stages[0].changes[0]
    managed = a_route(one_variant(2, scaler="variantautoscaling"), {EAST: 1}).stages[0].changes[0]
    assert (drain_limit_s(change, 30.5), drain_limit_s(managed, 30.0)) == (91, 90 + CONTROL_S)


def test_what_is_left_to_do_is_told_wave_by_wave() -> None:
    west = a_candidate(pool="west", current=1, object=an_object())
    bare = a_candidate(variant="bare", pool="west")
    route = a_route(one_variant(2, west, bare), {bare.id: 1}, {EAST: 1, west.id: 2}, {EAST: 2})
    assert [line.split(":")[0] for line in left_to_do(route)] == ["wave 1", "wave 2"]
    assert "chat/bare in pool west, from 0 to 1 replica." in next(left_to_do(route))
