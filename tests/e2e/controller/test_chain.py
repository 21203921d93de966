"""The stage without the controller: engines serve and are scraped, and the real HPA controller follows a gauge by hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.e2e.controller.background import TEXT
from tests.e2e.controller.traffic import Ending
from tests.e2e.controller.world import World, controller_test
from tests.e2e.kube.control_plane import wait_until
from tests.page_servers import page_of, served

pytestmark = controller_test()


def test_a_deployment_follows_a_gauge_up_and_down_and_no_request_is_cut(world: World) -> None:
    with world.service() as service, served() as gauge:

        def say(replicas: int) -> None:
            labels = {"variant_name": "llama", "namespace": service.namespace, "accelerator_type": "H100"}
            gauge.pages["/metrics"] = page_of({"wva_desired_replicas": replicas}, **labels)

        say(1)
        labels = {"namespace": "fleetplan", "pod": "by-hand", "job": "by-hand"}
        world.prometheus.tell("by hand", [{"targets": [f"127.0.0.1:{gauge.port}"], "labels": labels}])
        service.variant("llama", replicas=1)
        wait_until(lambda: service.ready() == 1, what="the first replica")
        service.clients.rps = 6.0
        say(3)
        wait_until(lambda: service.ready() == 3, within_s=60, what="three replicas")
        wait_until(lambda: all(each.running for each in service.engines.values()), what="work for all three")
        _is_scraped(world, service.namespace, engines=3)
        say(1)
        wait_until(lambda: len(service.pods()) == 1, within_s=60, what="one replica")
        service.clients.rps = 0.0
        wait_until(lambda: not service.clients.waiting, what="the last answer")
        assert set(service.clients.endings) == {Ending.DONE}
        assert service.clients.endings[Ending.DONE] > 20
        world.prometheus.tell("by hand", [])


def _is_scraped(world: World, namespace: str, *, engines: int) -> None:
    running = f'vllm:num_requests_running{{namespace="{namespace}"}} > 0'
    wait_until(
        lambda: len(world.prometheus.query(running)) == engines, what=f"{engines} engines in Prometheus"
    )


def test_a_request_is_cut_where_nothing_waits_for_it(world: World) -> None:
    with world.service() as service:
        service.variant("llama", replicas=1)
        wait_until(lambda: service.ready() == 1, what="the replica")
        service.clients.rps = 4.0
        wait_until(lambda: sum(len(each.running) for each in service.engines.values()) > 1, what="work")
        service.clients.rps = 0.0
        world.kubelets.end_now(service.namespace)
        wait_until(lambda: service.clients.endings[Ending.CUT] > 1, what="answers that break off")


def test_pages_of_the_engine_are_of_vllm(world: World) -> None:
    data = os.environ.get("FLEETPLAN_TEST_DATA")
    if not data:
        pytest.skip("FLEETPLAN_TEST_DATA is unset: it names a folder with a page of a real vLLM")
    real = (Path(data) / "scrapes" / "vllm_v1_kops_qwen2.5-0.5b.prom").read_text()
    with world.service() as service:
        service.variant("llama", replicas=1)
        wait_until(service.ready, what="the replica")
        ours = next(iter(service.engines.values())).page()
    assert _labels(ours).keys() <= _labels(real).keys()
    assert TEXT["Content-Type"].endswith("charset=utf-8")
    for name, labels in _labels(ours).items():
        assert labels <= _labels(real)[name], name


def _labels(page: str) -> dict[str, set[str]]:
    """Names of labels by series."""
    found: dict[str, set[str]] = {}
    for name, inside in re.findall(r"^([A-Za-z_:]+)(?:\{(.*)\})? ", page, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', inside))
    return found
