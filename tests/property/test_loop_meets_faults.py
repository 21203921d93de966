"""An API server that fails at random, and an end at every moment: nothing is doubled, nothing goes to zero, all is well after."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from planner.clock import FakeClock
from planner.control.cluster import ClusterFault, Trouble
from planner.control.cluster.transport import Answer, Call
from planner.control.running.controller import Controller
from tests.control.controller_builders import START, Served, Told, a_controller, led
from tests.control.test_run_cycles import direct
from tests.kube_objects import a_scaled_object

ALL = "actuators: [{name: draining}, {name: gauge}, {name: scale}, {name: variantautoscaling}]"
_REASONS = {409: "Conflict", 403: "Forbidden"}


def _refused(status: int) -> Answer:
    headers = {"retry-after": "1"} if status in {429, 503} else {}
    body = {
        "kind": "Status",
        "message": "the test says so",
        "reason": _REASONS.get(status, ""),
        "code": status,
    }
    return Answer(status, headers, json.dumps(body).encode())


class Weather:
    """What stands before a cluster: a share of all calls fails, some of them after they were carried out."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.share = 0.0
        self.cluster: Served | None = None

    def __call__(self, call: Call) -> Answer | None:
        if self.chance.random() >= self.share:
            return None
        kind = self.chance.choice([409, 429, 403, 500, 503, "away", "lost", "html"])
        if kind == "away":
            raise ClusterFault(Trouble.UNREACHABLE, "the test says so")
        if kind == "lost" and call.method != "GET":
            assert self.cluster is not None
            self.cluster._answered(call)
        return _refused(kind) if isinstance(kind, int) else Answer(502, {}, b"<html>bad gateway</html>")


def _by_hpa(**options: Any) -> Served:
    return Served(**options)


def _by_keda(**options: Any) -> Served:
    cluster = Served(a_scaled_object(minReplicaCount=0, maxReplicaCount=10), **options)
    del cluster._objects["autoscaling", "horizontalpodautoscalers", "prod", "llama-hpa"]
    return cluster


def _gauge(controller: Controller) -> list[float]:
    lines = controller.metrics(None).decode().splitlines()
    return [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("wva_desired_replicas{")]


def _cycle(controller: Controller, cluster: Served) -> None:
    mark = len(cluster.writes)
    record = controller.cycle(("timer",))
    assert record.kind != "failed", record.findings
    written = [json.loads(call.body or b"") for call in cluster.writes[mark:] if call.path.endswith("/scale")]
    rows = list(controller.loop.rows.values())
    for row in rows:
        assert row.desired is None or 1 <= row.desired <= 10
    assert all(1 <= count <= 10 for count in _gauge(controller))
    assert len(written) <= 1, "one count is written once"
    assert all(one["spec"]["replicas"] == rows[0].desired for one in written)
    assert 1 <= cluster.replicas() <= 10


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(direct, ALL, id="scale"),
        pytest.param(_by_hpa, "actuators: [{name: draining}, {name: hpa}]", id="hpa"),
        pytest.param(_by_keda, "actuators: [{name: draining}, {name: gauge}, {name: keda}]", id="keda"),
    ],
)
def test_two_hundred_cycles_of_an_api_that_fails_at_random(
    made: Callable[..., Served], text: str, seed: int
) -> None:
    weather, source, clock = Weather(seed), Told(), FakeClock(START)
    cluster = weather.cluster = made(before=weather)
    pair = [a_controller(cluster, source, text, clock=clock, who=who) for who in ("one", "two")]
    weather.share = 0.25
    for number in range(200):
        source.kv = weather.chance.choice([0.05, 0.3, 0.6, 0.78, 0.95]) if number % 10 == 0 else source.kv
        source.answers = weather.chance.random() > 0.1
        led_by = [controller for controller in pair if controller.elect()]
        assert len(led_by) <= 1
        for controller in led_by:
            _cycle(controller, cluster)
        if weather.chance.random() < 0.6:
            cluster.settle()
        clock.advance(15)
    weather.share, source.answers, source.kv = 0.0, True, 0.6
    for _ in range(10):
        for controller in [each for each in pair if each.elect()]:
            _cycle(controller, cluster)
            assert not [each for each in controller.loop.findings if "broke" in each.problem]
        cluster.settle()
        clock.advance(15)


class Ending:
    """Ends a controller at its n-th call to the cluster, and notes what is written after it."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.controller: Controller | None = None
        self.over = False
        self.written: list[str] = []

    def __call__(self, call: Call) -> Answer | None:
        if self.controller is None:
            return None
        if self.over and call.method != "GET":
            self.written.append(call.path)
        self.left -= 1
        if self.left == 0:
            self.over = True
            self.controller.stop()
        return None


def _ended(at: int, kv: float) -> tuple[Ending, int]:
    """Who was ended at a call, and the replicas that whoever came next ended with."""
    ending, source, clock = Ending(at), Told(kv=kv), FakeClock(START)
    cluster = direct(replicas=4, before=ending)
    first = led(a_controller(cluster, source, ALL, clock=clock))
    ending.controller = first
    first.cycle(("timer",))
    first.end()
    ending.controller = None
    assert (
        cluster.thing("leases", "fleetplan", "coordination.k8s.io", "default")["spec"]["holderIdentity"] == ""
    )
    counts = [path for path in ending.written if path.endswith("/scale")]
    assert len(counts) <= 1
    cluster.settle()
    second = led(a_controller(cluster, source, ALL, clock=clock, who="two"))
    for _ in range(5):
        clock.advance(15)
        second.elect()
        second.cycle(("timer",))
        cluster.settle()
    return ending, cluster.replicas()


@pytest.mark.parametrize(("kv", "end"), [(0.9, 10), (0.03, 1)])
def test_an_end_at_any_moment_leaves_nothing_half_done(kv: float, end: int) -> None:
    for at in range(1, 100, 7):
        ending, replicas = _ended(at, kv)
        assert replicas == end
        if not ending.over:
            assert at > 20
            return
    pytest.fail("a cycle has fewer calls")
