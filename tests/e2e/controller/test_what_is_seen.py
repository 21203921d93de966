"""What `fleetplan observe` sees of the stage: engines of pods, what waits in the picker, and what starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.observation import EngineObservation, Observation
from tests.e2e.controller.engine_server import EngineSize
from tests.e2e.controller.world import Service, World, controller_test
from tests.e2e.kube.control_plane import wait_until

pytestmark = controller_test()


def observed(world: World, service: Service, path: Path) -> Observation:
    words = [
        "observe", "--kubernetes", "--kubeconfig", str(world.plane.kubeconfig()), "-n", service.namespace,
        "--prometheus", world.prometheus.url, "-o", str(path),
    ]  # fmt: skip
    command = [str(Path(sys.executable).with_name("fleetplan")), *words]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=os.environ)
    assert said.returncode == 0, said.stdout + said.stderr
    return Observation.model_validate_json(path.read_text())


def busy(engine: EngineObservation) -> bool:
    return bool(engine.running) and engine.kv_now is not None and engine.kv_now > 0.5


def test_engines_and_the_queue_of_the_picker_are_seen(world: World, tmp_path: Path) -> None:
    with world.service(size=EngineSize(batch=8), at_most=8) as service:
        service.variant("llama", replicas=2)
        wait_until(lambda: service.ready() == 2, what="two replicas")
        service.clients.rps = 20.0
        path = tmp_path / "seen.json"

        def is_seen() -> Observation | None:
            seen = observed(world, service, path)
            queued = seen.traffic and (seen.traffic[0].queued or 0.0) > 5
            return seen if queued and len(seen.engines) == 2 and all(map(busy, seen.engines)) else None

        seen = wait_until(is_seen, what="load on both")
        pods = {each["metadata"]["name"] for each in service.pods()}
    assert seen.complete
    assert {each.pod for each in seen.engines} == pods
    assert {each.variant for each in seen.engines} == {"llama"}
    assert {each.kv_tokens for each in seen.engines} == {128 * 16.0}
    assert seen.traffic[0].in_flight is not None
    assert seen.traffic[0].in_flight > 5


def test_a_pod_that_starts_is_pending_and_no_engine(world: World, tmp_path: Path) -> None:
    with world.service() as service:
        world.kubelets.start_s[service.namespace] = 3600.0
        service.variant("llama", replicas=1)
        wait_until(lambda: world.kubelets.living_in(service.namespace), what="a pod that starts")
        down = f'up{{namespace="{service.namespace}", pod!~"picker.*"}} == 0'
        wait_until(lambda: world.prometheus.query(down), what="a target that nobody listens at")
        seen = observed(world, service, tmp_path / "seen.json")
    assert [(each.ready, each.pending, each.pods) for each in seen.variants] == [(0, 1, ())]
    assert [each for each in seen.engines if each.age_s is not None] == []


@pytest.mark.parametrize("keeps", [False, True], ids=["vllm", "one that keeps the dead"])
def test_who_went_away_waits_no_more_unless_the_engine_has_that_fault(world: World, *, keeps: bool) -> None:
    with world.service(size=EngineSize(batch=2, keeps_the_dead=keeps)) as service:
        service.variant("llama", replicas=1)
        wait_until(service.ready, what="the replica")
        service.clients.rps = 10.0
        engine = wait_until(lambda: next(iter(service.engines.values()), None), what="the engine")
        wait_until(lambda: len(engine.waiting) > 6, what="a queue")
        service.clients.abort()
        wait_until(lambda: not engine.running, what="nothing that runs")
        assert bool(engine.waiting) is keeps
