"""What our layer over the API makes of an API server that fails, on a real one behind a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.clock import SystemClock
from planner.control.cluster import Api, ClusterFault, ClusterOptions, Trouble, connect
from planner.control.cluster.kinds import DEPLOYMENTS, NAMESPACES
from tests.e2e.controller.api_proxy import WRITES, ApiProxy, Failing, failing
from tests.e2e.controller.world import World, controller_test

pytestmark = controller_test()


@pytest.fixture
def proxy(world: World, tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(world.plane, world.background, tmp_path) as found:
        yield found


@pytest.fixture
def api(proxy: ApiProxy) -> Api:
    return connect(ClusterOptions(kubeconfig=proxy.kubeconfig(), timeout_s=1, within_s=3), SystemClock())


def trouble_of(call: Callable[[], Any]) -> Trouble:
    with pytest.raises(ClusterFault) as raised:
        call()
    return raised.value.trouble


@pytest.mark.parametrize(
    ("how", "trouble"),
    [
        (Failing(status=403), Trouble.DENIED),
        (Failing(status=429, headers={"Retry-After": "1"}), Trouble.BUSY),
        (Failing(status=500), Trouble.BUSY),
        (Failing(slow_s=2.0), Trouble.TIMEOUT),
    ],
    ids=["403", "429", "500", "slow"],
)
def test_a_reading_that_fails_is_told_apart(
    proxy: ApiProxy, api: Api, how: Failing, trouble: Trouble
) -> None:
    proxy.fails = failing(how, "GET")
    assert trouble_of(lambda: api.list(NAMESPACES)) is trouble


def test_a_moment_of_being_busy_is_waited_for(proxy: ApiProxy, api: Api) -> None:
    proxy.fails = failing(Failing(status=429, headers={"Retry-After": "1"}), "GET", times=1)
    assert api.list(NAMESPACES).items
    assert [status for *_, status in proxy.calls] == [429, 200]


def test_a_server_that_is_away_is_there_again(proxy: ApiProxy, api: Api) -> None:
    proxy.away = True
    assert trouble_of(lambda: api.list(NAMESPACES)) is Trouble.UNREACHABLE
    proxy.away = False
    assert api.list(NAMESPACES).items


def test_a_write_whose_answer_is_lost_is_made_once(world: World, proxy: ApiProxy, api: Api) -> None:
    with world.service() as service:
        service.variant("llama", replicas=1)
        proxy.fails = failing(Failing(loses=True), *WRITES, times=1)
        before = service.generation("llama")
        assert api.scale(DEPLOYMENTS, service.namespace, "llama", 3, seen=1).after == 3
        done = [each for each in proxy.writes("/scale") if each[2] == 200]
        assert len(done) == 1
        assert service.generation("llama") == before + 1


def test_a_conflict_is_read_again_and_passes(world: World, proxy: ApiProxy, api: Api) -> None:
    with world.service() as service:
        service.variant("llama", replicas=1)
        proxy.fails = failing(Failing(status=409), *WRITES, times=2)
        assert api.scale(DEPLOYMENTS, service.namespace, "llama", 2, seen=1).changed
        assert service.wanted("llama") == 2
        # The server may have had a conflict of its own.
        assert [status for *_, status in proxy.writes()][:2] == [409, 409]
        assert [status for *_, status in proxy.writes()].count(200) == 1
