"""What analyzers read of a service: its variants with their engine instances, its traffic, and what the router holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from models.engine import EngineArguments
from planner.saturation.published import BOTH

__all__ = [
    "PREFILL",
    "EngineLimits",
    "InstanceReading",
    "SchedulerQueue",
    "Traffic",
    "VariantReading",
    "queued_tokens",
]

PREFILL: Final = "prefill"

_BATCHED_TOKENS: Final = 8192
_SEQUENCES: Final = 256
_BYTES_PER_TOKEN: Final = 4.0


class EngineLimits(NamedTuple):
    """What an engine takes into one step: B tokens and S requests."""

    batched_tokens: int = _BATCHED_TOKENS
    sequences: int = _SEQUENCES

    @classmethod
    def of(cls, arguments: EngineArguments) -> EngineLimits:
        """The limits of a vLLM V1 engine, with its defaults where nothing is said (8192 tokens, 256 requests)."""
        return cls(arguments.batched_tokens or _BATCHED_TOKENS, arguments.max_requests or _SEQUENCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceReading:
    """One engine instance (a rank of a data-parallel pod is one). None: no metric, which is not zero.

    Attributes:
        kv_usage: KV-cache usage, 0..1, maximum of the last minute.
        queue: waiting requests, maximum of the last minute.
        kv_tokens: size of its KV cache, tokens.
        kv_now: KV-cache usage at this moment, 0..1.
        queue_now: waiting requests at this moment; with it the peaks of cache and queue are not added, which need not
            have been at one moment.
        itl_s: mean inter-token latency of the last minute, s.
        ttft_s: mean time to first token of the last minute, s.
        token_rate: output tokens per second over the last minute.
        request_rps: requests per second sent to it over the last minute.
    """

    kv_usage: float | None = None
    queue: float | None = None
    kv_tokens: int | None = None
    kv_now: float | None = None
    queue_now: float | None = None
    itl_s: float | None = None
    ttft_s: float | None = None
    token_rate: float | None = None
    request_rps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantReading:
    """One variant of a service, as it runs.

    Attributes:
        name: unique in its service.
        accelerator: GPU type; empty: unknown.
        role: ``prefill``, ``decode`` or ``both``.
        gpus: GPUs of one replica.
        instances: ready instances that reported anything.
        unreported: ready instances of which nothing is known.
        pods: ready pods; 0: one per instance.
        pending: pods on order, not ready.
        limits: what its engine takes into one step; None: unknown.
        kv_tokens: KV cache that its arguments give to one instance, tokens; None: not given.
        tau_kv: KV-cache usage at which one of its instances is saturated; None: as the service says.
        tau_queue: waiting requests at which one is; None: as the service says.
    """

    name: str
    accelerator: str = ""
    role: str = BOTH
    gpus: int = 1
    instances: tuple[InstanceReading, ...] = ()
    unreported: int = 0
    pods: int = 0
    pending: int = 0
    limits: EngineLimits | None = None
    kv_tokens: int | None = None
    tau_kv: float | None = None
    tau_queue: float | None = None

    @property
    def ready(self) -> int:
        """Ready instances, reporting or not."""
        return len(self.instances) + self.unreported

    @property
    def pending_instances(self) -> int:
        """Instances on order: a data-parallel pod brings as many as a ready one has."""
        return self.pending * self.instances_per_pod

    @property
    def instances_per_pod(self) -> int:
        """Ready instances of a ready pod; 1 where no pod is ready."""
        return self.ready // self.pods if 0 < self.pods < self.ready else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Means over the last minutes. 0: unknown.

    Attributes:
        input_tokens: I, mean input length.
        output_tokens: O, mean output length.
        hit_share: share of input tokens found in the prefix cache, 0..1.
        arrival_rps: requests per second; None: unknown.
    """

    input_tokens: float = 0.0
    output_tokens: float = 0.0
    hit_share: float = 0.0
    arrival_rps: float | None = None


class SchedulerQueue(NamedTuple):
    """What the router's flow control holds: requests, and their bytes."""

    requests: float = 0.0
    bytes: float = 0.0

    @classmethod
    def of_tokens(cls, requests: float, tokens: float) -> SchedulerQueue:
        """A queue whose requests have so many input tokens together."""
        return cls(requests, _BYTES_PER_TOKEN * tokens)


def queued_tokens(queue: SchedulerQueue, traffic: Traffic, *, roles: Iterable[str] = ()) -> dict[str, float]:
    """Tokens that queued requests will bring: ``both`` for the whole service, and the share of each role.

    in = max(bytes/4, n·I)·(1 - hit), out = n·O. Prefill gets in; decode and both get in + out, so the shares of roles
    sum to more than the service.

    Source: llm-d autoscaling v0.9, internal/engines/analyzers/saturation_v2 (scheduler queue).
    """
    entering = max(queue.bytes / _BYTES_PER_TOKEN, queue.requests * traffic.input_tokens)
    entering *= 1.0 - traffic.hit_share
    total = entering + queue.requests * traffic.output_tokens
    return {BOTH: total} | {role: entering if role == PREFILL else total for role in roles}
