"""What replays of a trace against a fleet showed: one run per policy, in figures that can be laid beside each other."""

from __future__ import annotations

from pydantic import Field

from models.ids import Name
from models.units import Count, Ratio, Rps, Seconds, Share, Usd
from models.value import Value

__all__ = ["Latency", "PolicyRun", "PromiseKept", "Replay", "ServiceRun", "StepSource", "VariantRun"]


class Latency(Value):
    """How a latency is spread over requests; None: no request has one."""

    mean_s: Seconds | None = Field(None, description="mean, s")
    p50_s: Seconds | None = Field(None, description="median, s")
    p95_s: Seconds | None = Field(None, description="95th percentile, s")
    p99_s: Seconds | None = Field(None, description="99th percentile, s")


class PromiseKept(Value):
    """A promise of a service against what its requests saw."""

    name: Name = Field(description="ttft_s, itl_s or e2e_s")
    at: str = Field(description="statistic that is promised: mean, or a percentile such as p95")
    target_s: Seconds = Field(description="what is promised, s")
    seen_s: Seconds | None = Field(
        None, description="the same statistic of the requests that have the latency, s; None: none has"
    )
    kept: bool | None = Field(None, description="whether seen_s is at most target_s; None: no request")


class ServiceRun(Value):
    """Requests of one service, or of all, in one run."""

    service: str = Field(description="name of the service; empty: all together")
    arrivals: Count = Field(description="requests that came")
    done: Count = Field(description="requests that got their last token")
    failed: dict[str, int] = Field(
        {}, description="requests that failed, by cause; unfinished ones are none of them"
    )
    unfinished: Count = Field(0, description="requests still in the fleet when the run ended")
    attainment: Share | None = Field(
        None, description="share of ended requests that were done within every target; None: none ended"
    )
    goodput_rps: Rps = Field(description="requests done within every target, req/s of the run")
    throughput_rps: Rps = Field(description="requests done, req/s of the run")
    output_tokens_per_s: Ratio = Field(description="output tokens of requests done, per second of the run")
    preemptions: Count = Field(0, description="times that a request was put back for lack of KV blocks")
    prefix_hit_share: Share = Field(0.0, description="share of the input tokens found in prefix caches")
    ttft: Latency = Field(Latency(), description="time to first token")
    itl: Latency = Field(Latency(), description="mean time per output token after the first, of each request")
    e2e: Latency = Field(Latency(), description="whole request")
    promises: tuple[PromiseKept, ...] = Field((), description="each promise of the service")

    @property
    def failures(self) -> int:
        """Requests that failed, of all causes."""
        return sum(self.failed.values())


class VariantRun(Value):
    """Replicas of one variant in one run."""

    variant: Name = Field(description="variant in its pool: service/variant@pool")
    started: Count = Field(description="replicas that were created, those of the start among them")
    mean_replicas: Ratio = Field(description="replicas over time, those that start or drain among them")
    most_replicas: Count = Field(description="most of them at once, at the ends of sampling intervals")
    replica_hours: Ratio = Field(description="from creation to removal, of all of them, h")
    gpu_hours: Ratio = Field(description="GPUs held over time, h")
    cost: Usd = Field(description="of all of them, in the money of the cost unit")
    energy_kwh: Ratio | None = Field(None, description="kWh; None: the draw is unknown")


class PolicyRun(Value):
    """One policy against the trace."""

    policy: str = Field(description="name of the policy")
    duration_s: Seconds = Field(description="simulated time of the run, s")
    total: ServiceRun = Field(description="all services together")
    services: tuple[ServiceRun, ...] = Field(description="each service")
    variants: tuple[VariantRun, ...] = Field(description="each variant that was there")
    decisions: Count = Field(0, description="times that a count was changed")
    exact: bool = Field(
        True, description="whether percentiles are exact; else each is within 0.5 % of the exact one"
    )

    @property
    def cost(self) -> float:
        """Of all replicas, in the money of the cost unit."""
        return sum(each.cost for each in self.variants)

    @property
    def energy_kwh(self) -> float | None:
        """Of all replicas; None: the draw of one of them is unknown."""
        known = [each.energy_kwh for each in self.variants if each.replica_hours > 0]
        return None if any(each is None for each in known) else sum(each or 0.0 for each in known)

    @property
    def replica_hours(self) -> float:
        """Of all replicas, h."""
        return sum(each.replica_hours for each in self.variants)

    @property
    def gpu_hours(self) -> float:
        """Of all replicas, h."""
        return sum(each.gpu_hours for each in self.variants)

    @property
    def most_replicas(self) -> int:
        """Most replicas of each variant, added up."""
        return sum(each.most_replicas for each in self.variants)


class StepSource(Value):
    """Where the step times of a variant are from."""

    variant: Name = Field(description="variant in its pool: service/variant@pool")
    origin: str = Field(description="given, measured or modeled")
    source: str = Field(description="row, formula or field they are from")


class Replay(Value):
    """Policies side by side on one trace."""

    scenario: str = Field(description="name of the scenario")
    derived_from: str = Field("", description="fingerprint of the scenario")
    traces: tuple[str, ...] = Field(description="traces as they were given")
    seed: int = Field(description="of all chance")
    cost_unit: str = Field("USD/h", description="unit of costs per hour: a cost is in its money")
    runs: tuple[PolicyRun, ...] = Field(description="one per policy, in the order asked for")
    steps: tuple[StepSource, ...] = Field((), description="where step times are from")
    notes: tuple[str, ...] = Field((), description="what a reader should know of how it was made")
