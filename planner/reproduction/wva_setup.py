"""The cluster experiments of WVA (figures 4 to 6): fleet, traffic and policies, every parameter in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from models.autoscaling import (
    HpaBehavior,
    HpaMetric,
    HpaSpec,
    MetricSource,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
)
from models.saturation import SaturationThresholds
from models.scenario import Scenario
from models.simulation import Admission, ReplicaSpec, RouterSpec, ScorerWeights, ServiceSpec, TwinSpec
from models.twin_timing import QueueingTiming
from planner.replaying.planning_loop import PlannerAutoscaler, PlannerSettings
from planner.simulation.autoscaling import HpaAutoscaler, WvaAutoscaler, WvaSettings, wva_variants
from planner.simulation.protocols import Autoscaler
from planner.traces.generating import Generator
from planner.traces.lengths import Independent, Normal
from planner.traces.shapes import Constant

__all__ = [
    "HPA", "INPUT", "OURS", "OURS_REFUSING", "OUTPUT", "POLICIES", "RATES_RPS", "SOURCE", "VARIANT", "WVA", "WVA_HELD", "Cluster",
    "cluster_traffic",
]  # fmt: skip

SOURCE: Final = "arXiv 2603.09730v2, section V"
HPA, WVA, OURS = "HPA", "WVA", "ours"
WVA_HELD, OURS_REFUSING = "WVA, router holds", "ours, router refuses"
"""Each with the other's router, to tell what comes of counts and what of admission."""
RATES_RPS: Final = (2.0, 3.0, 5.0, 6.0)
INPUT: Final = Normal(4096, 2048, 10, 8192)
OUTPUT: Final = Normal(1024, 512, 10, 2048)
_HOLDING: Final = (OURS, WVA_HELD)
SERVICE: Final = "chat"
VARIANT: Final = "chat/h100@cluster"
"""As the planner calls the one candidate that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Parameters of the cluster experiments.

    Attributes:
        most: replicas at most.
        alpha_ms: of a step.
        beta_ms: of a step, per token computed.
        gamma_ms: of a step, per token read from the KV cache.
        kv_blocks: of a replica, 16 tokens each.
        startup_s: from asking for a replica until it takes requests.
        grace_s: what a replica that is taken away may take to finish.
        max_num_seqs: of the engine.
        max_num_batched_tokens: of the engine.
        tau_kv: τ of the KV cache, for WVA, the router and the planner.
        tau_queue: τ of the queue.
        gamma_kv: distance to τ at which WVA grows; the planner rates replicas there.
        gamma_queue: the same of the queue.
        hpa_kv: target of HPA, mean KV usage.
        hpa_queue: target of HPA, mean queue.
        scrape_s: metrics are read so often.
        lag_s: age of what a decision sees, at least.
        interval_s: between two decisions of WVA, and of our planner.
        down_window_s: stabilization window of either HPA when it shrinks.
        hpa_maxima: whether HPA reads maxima of a minute, as WVA does, or figures of now.
        pods: that either HPA may add or take at once.
        pods_per_s: and how long that counts.
        held_kv: KV usage at which our router holds requests.
        held_s: longest time that it does, then 503.
        used: share of what steps with a full batch could do that our plan counts on.
        window_s: over which our planner takes the rate of arrivals.
        warm_s: traffic before figures are taken.
        measured_s: traffic in which they are.
    """

    most: int = 10
    alpha_ms: float = 20.0
    beta_ms: float = 0.255
    gamma_ms: float = 1e-5
    kv_blocks: int = 50_000
    startup_s: float = 90.0
    grace_s: float = 0.0
    max_num_seqs: int = 16_000
    max_num_batched_tokens: int = 16_384
    tau_kv: float = 0.8
    tau_queue: int = 5
    gamma_kv: float = 0.3
    gamma_queue: float = 3.0
    hpa_kv: float = 0.5
    hpa_queue: float = 3.0
    scrape_s: float = 15.0
    lag_s: float = 15.0
    interval_s: float = 60.0
    down_window_s: float = 0.0
    hpa_maxima: bool = True
    pods: int = 10
    pods_per_s: float = 15.0
    held_kv: float = 0.9
    held_s: float = 60.0
    used: float = 0.95
    window_s: float = 600.0
    warm_s: float = 1500.0
    measured_s: float = 600.0

    @property
    def router(self) -> RouterSpec:
        """The same under every policy: refuses with 429 while every replica is saturated."""
        return RouterSpec(
            weights=ScorerWeights(queue=2.0, kv_cache=2.0, prefix=3.0),
            admission=Admission.REJECT,
            saturated_queue=self.tau_queue,
            saturated_kv=self.tau_kv,
        )

    def fleet(self, initial: int) -> TwinSpec:
        """The cluster with so many replicas at the start."""
        replica = ReplicaSpec(
            variant=VARIANT,
            service=SERVICE,
            timing=QueueingTiming(
                alpha_ms=self.alpha_ms,
                beta_ms_per_token=self.beta_ms,
                gamma_ms_per_token=self.gamma_ms,
            ),
            kv_blocks=self.kv_blocks,
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            prefix_caching=False,
            startup_s=self.startup_s,
            grace_s=self.grace_s,
            gpu_type="H100",
            price_usd_per_h=2.5,
            power_idle_w=700.0,
            min_replicas=1,
            max_replicas=self.most,
            initial_replicas=initial,
        )
        return TwinSpec(services=(ServiceSpec(name=SERVICE, router=self.router),), replicas=(replica,))

    @property
    def rated_rps(self) -> float:
        """What our plan takes a replica to carry: 1/(β·(I + O) + γ·O·(I + O/2)) is all that it can with a full batch."""
        inputs, outputs = INPUT.mean, OUTPUT.mean
        busy_ms = self.beta_ms * (inputs + outputs) + self.gamma_ms * outputs * (inputs + outputs / 2)
        return self.used * 1000.0 / busy_ms

    @property
    def held(self) -> RouterSpec:
        """The router as our plan sets it: who finds every replica full waits, and is not refused."""
        return self.router.but(
            admission=Admission.QUEUE, saturated_kv=self.held_kv, queue_timeout_s=self.held_s
        )

    def fleet_for(self, policy: str, initial: int) -> TwinSpec:
        """The cluster under a policy; only ours sets the router too."""
        fleet = self.fleet(initial)
        service = fleet.services[0]
        return fleet.but(services=(service.but(router=self.held),)) if policy in _HOLDING else fleet

    def hpa(self) -> HpaSpec:
        """The HPA: the baseline itself, or what carries out WVA's decisions."""
        pods = (ScalingPolicy(type=PolicyType.PODS, value=self.pods, period_s=self.pods_per_s),)
        behavior = HpaBehavior(
            up=ScalingRules(stabilization_s=0.0, policies=pods),
            down=ScalingRules(stabilization_s=self.down_window_s, policies=pods),
        )
        ending = "_max_1m" if self.hpa_maxima else ""
        targets = {f"waiting{ending}": self.hpa_queue, f"kv_usage{ending}": self.hpa_kv}
        return HpaSpec(
            min_replicas=1,
            max_replicas=self.most,
            metrics=tuple(
                HpaMetric(name=name, source=MetricSource.PODS, target=target)
                for name, target in targets.items()
            ),
            behavior=behavior,
        )

    @property
    def thresholds(self) -> SaturationThresholds:
        """τ and γ."""
        return SaturationThresholds(
            tau_kv=self.tau_kv,
            tau_queue=float(self.tau_queue),
            gamma_kv=self.gamma_kv,
            gamma_queue=self.gamma_queue,
        )


def cluster_traffic(rate_rps: float, duration_s: float, *, seed: int) -> Generator:
    """Poisson arrivals, bounded normal lengths as published."""
    return Generator(Constant(rate_rps, duration_s), Independent(INPUT, OUTPUT), seed=seed)


def _hpa(cluster: Cluster, fleet: TwinSpec) -> Autoscaler:
    return HpaAutoscaler({VARIANT: cluster.hpa()}, fleet)


def _wva(cluster: Cluster, fleet: TwinSpec) -> Autoscaler:
    settings = WvaSettings(thresholds=cluster.thresholds, interval_s=cluster.interval_s)
    return WvaAutoscaler(wva_variants(fleet), {VARIANT: cluster.hpa()}, twin=fleet, settings=settings)


def _ours(cluster: Cluster, fleet: TwinSpec) -> Autoscaler:
    routers = {service.name: service.router for service in fleet.services}
    settings = PlannerSettings(
        solver="pulp",
        period_s=cluster.interval_s,
        window_s=cluster.window_s,
        hold_s=cluster.interval_s,
        drain_s=cluster.window_s,
        lead_s=0.0,
        admits=False,
    )
    return PlannerAutoscaler(_scenario(cluster), frozenset({VARIANT}), routers, settings=settings)


POLICIES: Final[Mapping[str, Callable[[Cluster, TwinSpec], Autoscaler]]] = {
    HPA: _hpa,
    WVA: _wva,
    OURS: _ours,
    WVA_HELD: _wva,
    OURS_REFUSING: _ours,
}
"""What makes each policy for a fleet."""

_SCENARIO: Final = """
name: the cluster of the experiments
services:
  chat:
    llm: Llama-3.1-70B
    traffic: {{rate: 5 req/s, input: 4096, output: 1024}}
    thresholds: {{tau_kv: {tau_kv}, tau_queue: {tau_queue}, gamma_kv: {gamma_kv}, gamma_queue: {gamma_queue}}}
    variants:
      h100:
        accelerator: H100
        tp: 8
        cost: 2.5 $/h
        startup: {startup_s} s
        max_replicas: {most}
        capacity: {{rated: {rated_rps:.6f} req/s, kv_tokens: {kv_tokens}}}
        queueing: {{alpha: {alpha_ms} ms, beta: {beta_ms} ms/token, gamma: {gamma_ms} ms/token, max_batch: {batch}, chunk_tokens: {chunk}}}
pools:
  cluster: {{accelerator: H100, nodes: {{count: {most}, gpus: 8}}}}
"""


@lru_cache(maxsize=8)
def _scenario(cluster: Cluster) -> Scenario:
    """The cluster as a user would state it to the planner."""
    from planner.scenario import parse_scenario

    text = _SCENARIO.format(
        tau_kv=cluster.tau_kv,
        tau_queue=cluster.tau_queue,
        gamma_kv=cluster.gamma_kv,
        gamma_queue=cluster.gamma_queue,
        startup_s=cluster.startup_s,
        most=cluster.most,
        kv_tokens=16 * cluster.kv_blocks,
        rated_rps=cluster.rated_rps,
        alpha_ms=cluster.alpha_ms,
        beta_ms=cluster.beta_ms,
        gamma_ms=cluster.gamma_ms,
        batch=cluster.max_num_seqs,
        chunk=cluster.max_num_batched_tokens,
    )
    return parse_scenario(text, name="cluster")
