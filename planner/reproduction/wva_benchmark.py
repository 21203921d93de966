"""``wva-benchmark``: the benchmark table of WVA's repository (Qwen3-32B on H100), and the envelope of one replica."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from models.autoscaling import (
    HpaBehavior,
    HpaMetric,
    HpaSpec,
    MetricSource,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
)
from models.simulation import Admission, Outcome, RouterSpec, TwinSpec
from planner.replaying.fleet import playable
from planner.simulation.autoscaling import (
    HpaAutoscaler,
    KedaAutoscaler,
    StaticAutoscaler,
    WvaAutoscaler,
    WvaSettings,
    epp_saturation,
    wva_variants,
)
from planner.simulation.experiment import Experiment, run_experiment
from planner.traces.generating import Generator
from planner.traces.lengths import Fixed, Independent
from planner.traces.shapes import Constant, Shape, Steps

if TYPE_CHECKING:
    from planner.simulation.protocols import Autoscaler

__all__ = [
    "ARMS",
    "BURSTS",
    "HPA",
    "KEDA",
    "STATIC",
    "TABLE",
    "VARIANT",
    "WVA",
    "Arm",
    "Bench",
    "Row",
    "run_arm",
]

VARIANT: Final = "chat/fp8@h100"
WVA, HPA, STATIC, KEDA = "WVA V1", "HPA", "static 2", "EPP + KEDA"
BURSTS: Final = Steps((15.0, 2.0, 10.0, 15.0, 5.0, 2.0), (100.0,) * 6)

_SCENARIO: Final = """
name: one replica of the benchmark
services:
  chat:
    llm: Qwen3-32B
    traffic: {rate: 1 req/s, input: 1000, output: 1000}
    variants:
      fp8: {accelerator: H100, tp: 1, quantization: {weights: fp8}, cost: 10 $/h}
pools:
  h100: {accelerator: H100, nodes: {count: 2, gpus: 8}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Parameters of the benchmark.

    Attributes:
        duration_s: of a run, which ends there.
        most: replicas at most.
        startup_s: of a replica.
        held_s: longest wait in the router's flow control, in the arms that have one.
        in_flight: requests on a replica at which flow control holds further ones.
        scrape_s: metrics are read so often.
        interval_s: between two decisions of WVA.
        wva_up_window_s: stabilization window of the HPA below WVA when it grows.
        hpa_kv: target of the HPA.
        hpa_queue: target of the HPA.
    """

    duration_s: float = 600.0
    most: int = 10
    startup_s: float = 110.0
    held_s: float = 97.0
    in_flight: int = 0
    scrape_s: float = 15.0
    interval_s: float = 60.0
    wva_up_window_s: float = 240.0
    hpa_kv: float = 0.7
    hpa_queue: float = 2.0

    @property
    def flow_control(self) -> RouterSpec:
        """Holds requests while every replica is saturated, refuses those that waited too long."""
        return RouterSpec(
            admission=Admission.QUEUE, max_in_flight=self.in_flight, queue_timeout_s=self.held_s
        )

    def fleet(self, initial: int, *, controlled: bool) -> TwinSpec:
        """Replicas whose step times come from the measured rows that are shipped."""
        fleet = _measured()
        replica, service = fleet.replicas[0], fleet.services[0]
        replica = replica.but(
            initial_replicas=initial, min_replicas=1, max_replicas=self.most, startup_s=self.startup_s
        )
        router = self.flow_control if controlled else RouterSpec()
        return TwinSpec(services=(service.but(router=router),), replicas=(replica,))


@lru_cache(maxsize=1)
def _measured() -> TwinSpec:
    from planner.planning import sized
    from planner.scenario import parse_scenario

    scenario = parse_scenario(_SCENARIO, name="benchmark")
    problem = sized(scenario, allow_unserved=True)
    return playable(scenario, problem).fleet({VARIANT: 1}, nodes_added={}, also=frozenset()).twin


def _hpa_spec(bench: Bench, up_window_s: float = 0.0) -> HpaSpec:
    pods = (ScalingPolicy(type=PolicyType.PODS, value=10, period_s=150.0),)
    return HpaSpec(
        min_replicas=1,
        max_replicas=bench.most,
        metrics=(
            HpaMetric(name="waiting", source=MetricSource.PODS, target=bench.hpa_queue),
            HpaMetric(name="kv_usage", source=MetricSource.PODS, target=bench.hpa_kv),
        ),
        behavior=HpaBehavior(
            up=ScalingRules(stabilization_s=up_window_s, policies=pods),
            down=ScalingRules(stabilization_s=240.0, policies=pods),
        ),
    )


def _wva(bench: Bench, fleet: TwinSpec) -> Autoscaler:
    settings = WvaSettings(interval_s=bench.interval_s)
    hpa = _hpa_spec(bench, bench.wva_up_window_s)
    return WvaAutoscaler(wva_variants(fleet), {VARIANT: hpa}, twin=fleet, settings=settings)


def _hpa(bench: Bench, fleet: TwinSpec) -> Autoscaler:
    return HpaAutoscaler({VARIANT: _hpa_spec(bench)}, fleet)


def _static(bench: Bench, fleet: TwinSpec) -> Autoscaler:
    return StaticAutoscaler({VARIANT: fleet.replicas[0].initial_replicas})


def _keda(bench: Bench, fleet: TwinSpec) -> Autoscaler:
    return KedaAutoscaler({VARIANT: epp_saturation(bench.most)}, fleet)


@dataclass(frozen=True, slots=True)
class Arm:
    """A policy of the table: what decides, how many replicas begin, whether the router has flow control."""

    policy: Callable[[Bench, TwinSpec], Autoscaler]
    initial: int
    controlled: bool


ARMS: Final[Mapping[str, Arm]] = {
    WVA: Arm(_wva, 1, controlled=True),
    HPA: Arm(_hpa, 1, controlled=False),
    STATIC: Arm(_static, 2, controlled=False),
    KEDA: Arm(_keda, 1, controlled=False),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the published table; None: not given.

    Attributes:
        label: of the traffic.
        arm: which policy.
        shape: of the arrivals.
        lengths: input and output tokens.
        replicas: published mean.
        most: published maximum.
        ttft_p99_s: published.
        itl_p99_ms: published.
        errors: published.
    """

    label: str
    arm: str
    shape: Shape
    lengths: tuple[int, int]
    replicas: float
    most: int | None
    ttft_p99_s: float
    itl_p99_ms: float | None
    errors: int | None


_TWENTY: Final = Constant(20.0, 600.0)
_PREFILL, _DECODE, _EVEN = (4000, 1000), (1000, 4000), (1000, 1000)

TABLE: Final = (
    Row("prefill-heavy", WVA, _TWENTY, _PREFILL, 1.73, 3, 98.4, 54.8, 4184),
    Row("prefill-heavy", HPA, _TWENTY, _PREFILL, 2.30, 4, 555.5, 59.1, 0),
    Row("prefill-heavy", STATIC, _TWENTY, _PREFILL, 2.00, 2, 555.3, 58.2, 0),
    Row("prefill-heavy", KEDA, _TWENTY, _PREFILL, 7.42, None, 507.0, None, 0),
    Row("decode-heavy", WVA, _TWENTY, _DECODE, 1.84, None, 78.0, None, 3563),
    Row("decode-heavy", HPA, _TWENTY, _DECODE, 2.21, None, 357.0, None, 0),
    Row("symmetric", WVA, _TWENTY, _EVEN, 1.70, None, 100.0, None, 3729),
    Row("bursts", WVA, BURSTS, _EVEN, 2.43, None, 262.0, None, 6110),
)
"""docs/benchmark.md of llm-d's autoscaler; the rows of 600 s."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run shows.

    Attributes:
        replicas: mean there were.
        most: at once.
        ttft_p99_s: of requests with a first token when the run ended.
        itl_p99_ms: of requests done.
        errors: refused.
        done: requests.
        tokens_per_s: of requests done.
    """

    replicas: float
    most: int
    ttft_p99_s: float
    itl_p99_ms: float
    errors: int
    done: int
    tokens_per_s: float


def run_arm(arm: Arm, shape: Shape, lengths: tuple[int, int], *, seed: int, bench: Bench) -> Measured:
    """One run, which ends with the traffic."""
    fleet = bench.fleet(arm.initial, controlled=arm.controlled)
    trace = Generator(shape, Independent(*map(Fixed, lengths)), seed=seed)
    experiment = Experiment(fleet, seed=seed, until_s=shape.duration_s, scrape_interval_s=bench.scrape_s)
    result = run_experiment(experiment, trace, [arm.policy(bench, fleet)])
    served, there = result.served(), result.there(VARIANT)
    refused = served.outcomes[Outcome.REJECTED_429] + served.outcomes[Outcome.REJECTED_503]
    return Measured(
        replicas=float(np.mean(there)),
        most=int(there.max()),
        ttft_p99_s=served.ttft_s["p99"],
        itl_p99_ms=served.itl_s["p99"] * 1000.0,
        errors=refused,
        done=served.outcomes[Outcome.DONE],
        tokens_per_s=served.output_tokens_per_s,
    )
