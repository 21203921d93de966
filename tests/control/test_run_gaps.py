"""Where nobody watched nothing is known: clocks that are set, machines that stand still, restarts, disks that are full."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from models.observation import VariantObservation
from planner.clock import FakeClock
from planner.control.protocols import MetricsReading
from planner.control.running.controller import Controller
from planner.control.running.recording import read_records, record_files
from tests.control.controller_builders import START, Served, Told, a_controller, led
from tests.control.test_run_cycles import SCALES, direct

WINDOW = f"{SCALES}\nrules: {{stabilize_down_s: 300}}"


class Wandering(FakeClock):
    """A clock whose time of day is set by somebody."""

    off_s = 0.0

    def unix_s(self) -> float:
        return super().unix_s() + self.off_s


def cycles(controller: Controller, cluster: Served, clock: FakeClock, *, times: int) -> list[int]:
    """Replicas after each of so many cycles."""
    found = []
    for _ in range(times):
        clock.advance(15)
        controller.elect()
        controller.cycle(("timer",))
        found.append(cluster.replicas())
        cluster.settle()
    return found


def problems(controller: Controller) -> str:
    return " ".join(each.problem for each in controller.standing().findings)


@pytest.mark.parametrize("off_s", [3600.0, -3600.0, -20.0, 1e9, -1.7e9])
def test_a_clock_that_is_set_ends_no_window(off_s: float) -> None:
    source, cluster, clock = Told(kv=0.6), direct(replicas=4), Wandering(START)
    controller = led(a_controller(cluster, source, WINDOW, clock=clock))
    assert cycles(controller, cluster, clock, times=3) == [4, 4, 4]
    source.kv, clock.off_s = 0.03, off_s
    assert cycles(controller, cluster, clock, times=1) == [4]
    assert "the clock of this machine was set" in problems(controller)
    assert controller.healthy() == (True, "alive")
    assert set(cycles(controller, cluster, clock, times=18)) == {4}
    assert "clock" not in problems(controller)
    assert cycles(controller, cluster, clock, times=3)[-1] < 4, "the window is over some time"


def test_after_a_long_time_without_a_cycle_windows_begin_anew() -> None:
    source, cluster, clock = Told(kv=0.6), direct(replicas=4), FakeClock(START)
    controller = led(a_controller(cluster, source, WINDOW, clock=clock))
    cycles(controller, cluster, clock, times=2)
    source.kv = 0.03
    clock.advance(1800)
    assert set(cycles(controller, cluster, clock, times=19)) == {4}


@pytest.mark.parametrize(("away_s", "held"), [(30.0, 17), (1800.0, 19)])
def test_a_restart_goes_on_with_its_windows_only_where_it_was_short(
    tmp_path: Path, away_s: float, held: int
) -> None:
    source, cluster, clock = Told(kv=0.6), direct(replicas=4), FakeClock(START)
    first = led(a_controller(cluster, source, WINDOW, clock=clock, records=tmp_path))
    cycles(first, cluster, clock, times=2)
    first.end()
    source.kv = 0.03
    clock.advance(away_s)
    second = led(a_controller(cluster, source, WINDOW, clock=clock, who="two", records=tmp_path))
    counts = cycles(second, cluster, clock, times=22)
    assert counts.index(min(counts)) >= held
    assert min(counts) < 4


def test_what_sleeps_by_the_clock_was_watched_all_the_time() -> None:
    cluster, clock = direct(replicas=1), Wandering(START)
    va = cluster._objects["llmd.ai", "variantautoscalings", "prod", "llama-va"]
    va["spec"]["minReplicas"] = 0
    source = Idle()
    text = f"{SCALES}\nrules: {{scale_to_zero: true, retention_s: 600}}"
    controller = led(a_controller(cluster, source, text, clock=clock))
    assert set(cycles(controller, cluster, clock, times=2)) == {1}
    clock.off_s = 7200.0
    assert set(cycles(controller, cluster, clock, times=38)) == {1}
    assert cycles(controller, cluster, clock, times=5)[-1] == 0


class Idle(Told):
    """A source that nobody uses anything of."""

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        seen = super().read(variants, now_s)
        idle = {"running": 0.0, "waiting": 0.0, "kv_usage": 0.0, "kv_now": 0.0}
        quiet = {"arrival_rps": 0.0, "queued": 0.0, "arrived": 0.0, "completed": 0.0, "in_flight": 0.0}
        return MetricsReading(
            engines=tuple(each.model_copy(update=idle) for each in seen.engines),
            traffic=tuple(each.model_copy(update=quiet) for each in seen.traffic),
        )


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "", "null", "[]", "1e999", "\ufeff{}"])
def test_a_controller_starts_beside_a_damaged_memory(text: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(text, encoding="utf-8")
    cluster, clock = direct(replicas=4), FakeClock(START)
    controller = led(a_controller(cluster, Told(kv=0.5), WINDOW, clock=clock, records=tmp_path))
    assert cycles(controller, cluster, clock, times=2) == [4, 4]


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_was_full_for_a_while_costs_the_records_of_that_time_alone(tmp_path: Path) -> None:
    source, cluster, clock = Told(kv=0.78), direct(replicas=2), FakeClock(START)
    controller = led(a_controller(cluster, source, SCALES, clock=clock, records=tmp_path))
    cycles(controller, cluster, clock, times=1)
    (path,) = record_files(tmp_path)
    with full_after(path.stat().st_size + 100):
        cycles(controller, cluster, clock, times=1)
    assert controller.parts.records.failures
    cycles(controller, cluster, clock, times=1)
    assert [each.number for each in read_records(tmp_path)] == [1, 3]
    assert cluster.replicas() == 5
