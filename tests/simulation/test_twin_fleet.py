"""Replicas that come, go, fail and change size; the simulator's rules; experiments."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from models.simulation import NodeSpec, Observation, Outcome, ReplicaState, RetrySpec, RouterSpec
from models.twin_timing import SimulatorTiming
from planner.errors import ConfigurationError
from planner.simulation.experiment import Experiment, Happening, run_experiment
from planner.simulation.twin import Twin
from tests.twins import a_fleet, a_replica, poisson, replay, requests


def simulator(**changes: object) -> SimulatorTiming:
    return SimulatorTiming.model_validate({"ttft_ms": 100, "itl_ms": 12, "kv_cache": True} | changes)


def test_a_started_replica_is_ready_after_its_start_up() -> None:
    twin = Twin(a_fleet(a_replica(startup_s=30.0)), iter([]))
    twin.scale("v", 2)
    twin.advance(29.0)
    assert [r.state for r in twin.observe().replicas] == [ReplicaState.READY, ReplicaState.STARTING]
    twin.advance(31.0)
    assert [r.ready_s for r in twin.observe().replicas] == [0.0, 30.0]


@pytest.mark.parametrize(("grace_s", "outcome"), [(0.0, Outcome.ABORTED), (60.0, Outcome.DONE)])
def test_scale_in_drains_within_the_grace_period(grace_s: float, outcome: Outcome) -> None:
    twin = Twin(a_fleet(a_replica(grace_s=grace_s)), iter([requests([0.0], [100], [200])]))
    twin.advance(1.0)
    twin.scale("v", 0)
    twin.advance(10.0)
    assert not twin.observe().replicas
    assert twin.finish().requests["outcome"].tolist() == [outcome]


def test_a_node_that_fails_takes_its_replicas_and_others_start_where_there_is_room() -> None:
    nodes = tuple(NodeSpec(name=name, gpu_type="H", gpus=1) for name in ("n0", "n1", "n2"))
    router = RouterSpec(retry=RetrySpec(attempts=3))
    spec = a_fleet(a_replica(gpu_type="H", initial_replicas=2, startup_s=5.0), router=router, nodes=nodes)
    twin = Twin(spec, iter([poisson(100, 20.0)]))
    twin.advance(2.0)
    twin.fail("n0")
    twin.advance(60.0)
    result = twin.finish()
    assert [record.node for record in result.replicas] == ["n0", "n1", "n2"]
    assert np.all(result.requests["outcome"] == Outcome.DONE)
    assert result.requests["attempts"].sum() > 0


def test_the_simulator_counts_prompt_blocks_and_fails_what_does_not_fit() -> None:
    spec = a_replica(timing=simulator(), kv_blocks=1024, max_num_seqs=256)
    rows = replay(a_fleet(spec), requests([0.0] * 5, [4096] * 5, [10] * 5)).requests
    assert rows["outcome"].tolist() == [Outcome.DONE] * 4 + [Outcome.FAILED_500]


def test_the_simulator_slows_under_load_in_whole_milliseconds() -> None:
    """F 2, 16 seats: alone a token takes 12 ms, with 8 running 1.467·12 ms, cut to 17."""
    timing = simulator(time_factor_under_load=2.0, kv_cache=False)
    alone = replay(a_fleet(a_replica(timing=timing, max_num_seqs=16)), requests([0.0], [10], [11])).requests
    assert alone["end_s"][0] == pytest.approx(0.1 + 10 * 0.012)
    eight = replay(
        a_fleet(a_replica(timing=timing, max_num_seqs=16)), requests([0.0] * 8, [10] * 8, [11] * 8)
    ).requests
    assert eight["end_s"][7] - eight["first_token_s"][7] == pytest.approx(10 * 0.017, abs=0.012)


class Doubling:
    period_s = 10.0

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        return {"v": min(4, 2 * observation.desired["v"])}


def test_an_experiment_calls_its_autoscalers_and_counts_what_they_cost() -> None:
    spec = a_fleet(a_replica(startup_s=5.0, price_usd_per_h=3.6))
    failing = Happening(35.0, lambda twin: twin.fail("v-0"))
    result = run_experiment(
        Experiment(spec, until_s=100.0, happenings=(failing,)), [poisson(100, 2.0)], [Doubling()]
    )
    assert result.variants["v"]["ready"].max() == 4
    assert len(result.replicas) == 5
    assert result.cost_usd == pytest.approx(sum(r.gpu_s for r in result.replicas) * 3.6 / 3600)


def test_a_trace_that_does_not_fit_is_told_of_in_one_message() -> None:
    with pytest.raises(ConfigurationError, match="3 problems"):
        replay(a_fleet(), requests([1.0, 0.0], [0, 1], [1, 0]))
