"""WVA's experiments in the twin, smaller: the published orders, causes of failure told apart, and ours against both."""

from __future__ import annotations

from functools import cache
from statistics import fmean

import numpy as np
import pytest

from models.simulation import Outcome
from planner.reproduction.wva_benchmark import ARMS, STATIC, Arm, Bench, Measured, run_arm
from planner.reproduction.wva_benchmark import HPA as BENCH_HPA
from planner.reproduction.wva_benchmark import WVA as BENCH_WVA
from planner.reproduction.wva_ramps import RAMP, STAIRS, first_growth_s, in_step_s
from planner.reproduction.wva_runs import Seen, run_policy
from planner.reproduction.wva_setup import HPA, OURS, WVA, Cluster
from planner.reproduction.wva_simulation import A100, H100, Simulation, simulate
from planner.traces.shapes import Constant

CLUSTER = Cluster(warm_s=900.0, measured_s=300.0)


@cache
def seen(policy: str, rate_rps: float, *, seeds: int = 2, cluster: Cluster = CLUSTER) -> list[Seen]:
    return [run_policy(policy, rate_rps, seed=seed, cluster=cluster) for seed in range(seeds)]


def mean(runs: list[Seen], figure: str) -> float:
    return fmean(float(getattr(run, figure)) for run in runs)


@pytest.mark.parametrize("policy", [HPA, WVA, OURS])
def test_requests_are_conserved_and_the_cap_holds(policy: str) -> None:
    (run,) = seen(policy, 6.0, seeds=1)
    assert sum(run.outcomes.values()) == run.arrived
    assert run.outcomes[Outcome.UNFINISHED] == 0
    assert run.goodput_rps * CLUSTER.measured_s == pytest.approx(run.arrived * (1 - run.failed))
    assert run.replicas <= CLUSTER.most


def test_wva_fails_many_times_less_than_hpa_at_five_and_serves_clearly_more() -> None:
    wva, hpa = seen(WVA, 5.0), seen(HPA, 5.0)
    assert mean(hpa, "failed") >= 8 * mean(wva, "failed")
    assert mean(wva, "goodput_rps") > 1.1 * mean(hpa, "goodput_rps")
    assert mean(wva, "itl_s") < mean(hpa, "itl_s")
    assert mean(wva, "ttft_s") < mean(hpa, "ttft_s")


@pytest.mark.parametrize("rate_rps", [2.0, 3.0])
def test_wva_is_no_worse_at_moderate_load(rate_rps: float) -> None:
    wva, hpa = (seen(policy, rate_rps, seeds=4) for policy in (WVA, HPA))
    assert mean(wva, "failed") <= mean(hpa, "failed")
    assert mean(wva, "goodput_rps") >= mean(hpa, "goodput_rps")


def test_hpa_fails_because_it_is_full_and_because_it_ends_replicas_that_serve() -> None:
    runs = seen(HPA, 5.0)
    assert min(run.share(Outcome.REJECTED_429) for run in runs) > 0
    assert min(run.share(Outcome.ABORTED) for run in runs) > 0
    assert min(run.aborts for run in runs) >= 1


def test_wva_stands_at_the_cap_and_hpa_below_it() -> None:
    wva, hpa = seen(WVA, 6.0), seen(HPA, 6.0)
    assert mean(wva, "replicas") == pytest.approx(CLUSTER.most)
    assert mean(hpa, "replicas") < CLUSTER.most


@pytest.mark.parametrize("rate_rps", [2.0, 3.0, 5.0, 6.0])
def test_ours_serves_no_less_than_wva_and_fails_no_more_than_either(rate_rps: float) -> None:
    ours, wva, hpa = (seen(policy, rate_rps) for policy in (OURS, WVA, HPA))
    assert mean(ours, "goodput_rps") >= mean(wva, "goodput_rps")
    assert mean(ours, "failed") <= min(mean(wva, "failed"), mean(hpa, "failed"))


@pytest.mark.parametrize("rate_rps", [2.0, 5.0, 6.0])
def test_ours_needs_no_more_replica_hours(rate_rps: float) -> None:
    assert mean(seen(OURS, rate_rps), "replica_h") <= mean(seen(WVA, rate_rps), "replica_h")


def test_a_window_before_shrinking_takes_most_of_hpas_failures_away() -> None:
    patient = Cluster(warm_s=900.0, measured_s=300.0, down_window_s=300.0)
    assert mean(seen(HPA, 5.0, cluster=patient), "failed") < mean(seen(HPA, 5.0), "failed")


def test_replicas_follow_the_staircase_within_one_cycle_and_start_up() -> None:
    given = Simulation()
    waits = in_step_s(simulate(given, STAIRS, seed=0), A100)
    known = [wait for wait in waits if wait is not None and not np.isnan(wait)]
    assert known
    assert None not in waits
    assert max(known) <= given.reaction_s


def test_nothing_grows_without_a_rise() -> None:
    result = simulate(Simulation(), Constant(0.05, 300.0), seed=0)
    assert first_growth_s(result, A100, since_s=0.0) is None


def test_the_cheap_variant_grows_first_and_the_dear_one_when_it_is_used_up() -> None:
    result = simulate(Simulation(variants=((A100, 4), (H100, 10))), RAMP, seed=0)
    cheap, dear = (
        result.variants[name]["ready"] + result.variants[name]["starting"] for name in (A100, H100)
    )
    assert dear[np.flatnonzero(cheap < 4)[0] : np.argmax(cheap == 4)].max() == 1
    assert dear.max() > 1
    assert np.argmax(cheap == 4) < np.argmax(dear > 1)


BENCH = Bench(duration_s=240.0)
ALONE = Arm(ARMS[STATIC].policy, 1, controlled=False)


def measured(arm: Arm, rate_rps: float, lengths: tuple[int, int] = (1000, 1000)) -> Measured:
    return run_arm(arm, Constant(rate_rps, BENCH.duration_s), lengths, seed=0, bench=BENCH)


def test_the_knee_of_one_replica_is_at_two_requests_per_second() -> None:
    assert measured(ALONE, 2.0).ttft_p99_s < 0.2
    assert measured(ALONE, 3.0).ttft_p99_s > 15.0


def test_refusing_keeps_the_first_token_near_and_waiting_refuses_nobody() -> None:
    wva, hpa = (measured(ARMS[name], 20.0, (4000, 1000)) for name in (BENCH_WVA, BENCH_HPA))
    assert wva.errors > 0
    assert hpa.errors == 0
    assert wva.ttft_p99_s < hpa.ttft_p99_s
