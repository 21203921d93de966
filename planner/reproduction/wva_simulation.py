"""The simulations of WVA (figures 2 and 3): llm-d-inference-sim behind its router, WVA above HPAs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from models.autoscaling import HpaSpec
from models.reproduction import Origin, Parameter
from models.saturation import SaturationThresholds
from models.simulation import ReplicaSpec, RouterSpec, ScorerWeights, ServiceSpec, TwinSpec
from models.twin_timing import SimulatorTiming
from planner.reproduction.wva_setup import INPUT, OUTPUT
from planner.simulation.autoscaling import (
    HPA_METRICS,
    WVA_BEHAVIOR,
    WvaAutoscaler,
    WvaSettings,
    wva_variants,
)
from planner.simulation.experiment import Experiment, run_experiment
from planner.simulation.result import Result
from planner.traces.generating import Generator
from planner.traces.lengths import Independent
from planner.traces.shapes import Shape

__all__ = ["A100", "H100", "Simulation", "simulate"]

A100, H100 = "va-a100", "va-h100"
SERVICE: Final = "llama3-70b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Parameters of the simulations.

    Attributes:
        variants: that there are, with the most replicas of each.
        ttft_ms: of the simulator.
        itl_ms: of the simulator.
        a100_times: both, on A100, are so many times as long.
        startup_s: of a simulator's pod.
        step_s: what the figures call a step.
        interval_s: between two decisions of WVA.
        scrape_s: metrics are read so often.
        gamma_queue: γ_q.
        initial: replicas of the cheapest variant at the start; of the others there is one.
    """

    variants: tuple[tuple[str, int], ...] = ((A100, 20),)
    ttft_ms: float = 100.0
    itl_ms: float = 1.0
    a100_times: float = 1.0
    startup_s: float = 10.0
    step_s: float = 20.0
    interval_s: float = 15.0
    scrape_s: float = 5.0
    gamma_queue: float = 3.0
    initial: int = 1

    @property
    def reaction_s(self) -> float:
        """One control cycle and the start-up: scrape, WVA, HPA, pod."""
        return self.scrape_s + self.interval_s + 15.0 + self.startup_s

    @property
    def fleet(self) -> TwinSpec:
        """The fleet; draws are board powers."""
        specs = {A100: (1.0, 400.0), H100: (2.5, 700.0)}
        replicas = tuple(
            ReplicaSpec(
                variant=name,
                service=SERVICE,
                timing=self._timing(name),
                kv_blocks=1024,
                max_num_seqs=256,
                startup_s=self.startup_s,
                gpu_type=name.removeprefix("va-").upper(),
                price_usd_per_h=specs[name][0],
                power_idle_w=specs[name][1],
                min_replicas=1,
                max_replicas=most,
                initial_replicas=self.initial if place == 0 else 1,
            )
            for place, (name, most) in enumerate(self.variants)
        )
        router = RouterSpec(weights=ScorerWeights(queue=1.0, kv_cache=1.0, prefix=1.0))
        return TwinSpec(services=(ServiceSpec(name=SERVICE, router=router),), replicas=replicas)

    def _timing(self, variant: str) -> SimulatorTiming:
        times = self.a100_times if variant == A100 else 1.0
        return SimulatorTiming(ttft_ms=times * self.ttft_ms, itl_ms=times * self.itl_ms, kv_cache=True)

    def policy(self, fleet: TwinSpec) -> WvaAutoscaler:
        """WVA above one HPA per variant."""
        hpas = {
            name: HpaSpec(min_replicas=1, max_replicas=most, metrics=HPA_METRICS, behavior=WVA_BEHAVIOR)
            for name, most in self.variants
        }
        thresholds = SaturationThresholds(
            tau_kv=0.8, tau_queue=5.0, gamma_kv=0.3, gamma_queue=self.gamma_queue
        )
        settings = WvaSettings(thresholds=thresholds, interval_s=self.interval_s, spills=True)
        return WvaAutoscaler(wva_variants(fleet), hpas, twin=fleet, settings=settings)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All of them with their origin."""
        paper, source, chosen = Origin.PAPER, Origin.SOURCE, Origin.CHOSEN
        rows = (
            ("engine", "llm-d-inference-sim, 1,024 blocks of 16 tokens, max_num_seqs 256", paper, "its rules exactly: "
             "only full prompt blocks count, a request that finds no room fails with 500"),
            ("input, output tokens", f"normal {INPUT.mean:g} ± {INPUT.sd:g}, {OUTPUT.mean:g} ± {OUTPUT.sd:g}, bounded", paper, ""),
            ("variants", ", ".join(f"{name}: at most {most}" for name, most in self.variants), chosen,
             "costs 1.0 and 2.5, 400 and 700 W are the paper's; how many GPUs there were is not given"),
            ("τ_kv, τ_q, γ_kv", "0.8, 5, 0.3", paper, ""),
            ("γ_q", f"{self.gamma_queue:g}", source, "the shipped default"),
            ("router weights", "queue 1, KV cache 1, prefix 1", paper, ""),
            ("TTFT, ITL of the simulator", f"{self.ttft_ms:g} ms, {self.itl_ms:g} ms", chosen,
             "so that 2 to 10 req/s need a few to ten replicas, as in the figures"),
            ("start-up of a pod", f"{self.startup_s:g} s", chosen, "a simulator loads no weights"),
            ("a step of the figures", f"{self.step_s:g} s", chosen, "600 s make 30 steps: figure 3 goes beyond step 20"),
            ("WVA decides every", f"{self.interval_s:g} s", source, "GLOBAL_OPT_INTERVAL"),
            ("scrape interval", f"{self.scrape_s:g} s", chosen, "not given"),
            ("HPA below WVA", "no windows, 10 pods per 15 s; AverageValue 1", source, "sample"),
            ("variants at their ceiling", "the next one grows", chosen, "figure 3 shows it; the published rule grows the cheapest alone"),
            ("arrivals", "even, as guidellm's constant rate", chosen, "not given"),
        )  # fmt: skip
        return tuple(
            Parameter(name=name, value=value, origin=origin, why=why) for name, value, origin, why in rows
        )


def simulate(given: Simulation, shape: Shape, *, seed: int) -> Result:
    """Traffic of this shape against WVA, until every request has ended."""
    fleet = given.fleet
    trace = Generator(shape, Independent(INPUT, OUTPUT), cv=0.0, seed=seed)
    experiment = Experiment(fleet, seed=seed, scrape_interval_s=given.scrape_s)
    result = run_experiment(experiment, trace, [given.policy(fleet)])
    result.check_conservation()
    return result
