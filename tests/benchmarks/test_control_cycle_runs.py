"""The benchmarks of the controller run at a small size; no time is asserted."""

from __future__ import annotations

from tests.benchmarks import control_writes, overruns
from tests.benchmarks.control_cycle import PHASES, Bench, table
from tests.benchmarks.cycle_world import World
from tests.benchmarks.registry import Family, Instance


def test_cycles_plan_a_small_world_and_replicas_follow() -> None:
    world = World(6, 60, 3, seed=2)
    bench = Bench(world, "planner", {"time_limit_s": 5.0})
    cycles = []
    for _ in range(3):
        before = world.running
        cycles.append(bench.cycle())
        assert bench.loop.report.replicas_before == before
        assert bench.loop.report.failed == 0
        bench.follow()
        assert world.running == bench.loop.report.replicas_after
    assert all(set(cycle) == set(PHASES) and min(cycle.values()) >= 0 for cycle in cycles)
    assert [line.split("|")[1].strip() for line in table(cycles).splitlines()[2:]] == list(PHASES)
    assert f"{bench.loop.report.replicas_before:,} ->" in bench.said()


def test_statuses_are_written_on_change_alone() -> None:
    cycles, written = control_writes.an_hour(
        4, hours=0.1, actuators=["gauge", "variantautoscaling", "scale"], seed=0
    )
    assert cycles == 24
    assert 0 < written["variantautoscalings/status"] < cycles * 4
    assert written["deployments/scale"] > 0


def test_limits_are_kept_within_a_fifth_or_half_a_second() -> None:
    cases = {(1.0, 0.9): False, (1.0, 1.4): False, (1.0, 1.6): True, (5.0, 5.9): False, (5.0, 6.1): True}
    found = [overruns.Overrun("x", limit, took, "FEASIBLE") for limit, took in cases]
    assert [one.is_long for one in found] == list(cases.values())
    assert "**1.60**" in overruns.table(found, [limit for limit, _ in cases])


def test_every_limit_of_an_instance_is_measured() -> None:
    found = list(overruns.overruns(Instance(Family.AMPLE, 2), [5.0, 9.0], "auto", again=True))
    assert [(one.instance, one.limit_s) for one in found] == [("ample-2", 5.0), ("ample-2", 9.0)]
