"""The deployment of the Elastic EP experiments: what is published of it, and what had to be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from models.elastic import MeasuredResize, ResizeMode
from models.reproduction import Origin, Parameter
from models.simulation import (
    ElasticSize,
    ElasticSpec,
    ReplicaSpec,
    ResizeTiming,
    RetrySpec,
    RouterSpec,
    ServiceSpec,
    TwinSpec,
)
from models.twin_timing import LinearTiming
from planner.elastic import stages
from planner.traces.generating import Generator
from planner.traces.lengths import Independent, Normal
from planner.traces.shapes import Shape

__all__ = ["PUBLISHED", "SOURCE", "VARIANT", "Deployment", "deployment", "resizes"]

SOURCE: Final = (
    "vLLM's article on Elastic EP with NIXL EP (near-zero downtime), DeepSeek V4 Pro on GB200, TP 1"
)
VARIANT: Final = "dsv4"
_SERVICE: Final = "chat"


PUBLISHED: Final[Mapping[tuple[ResizeMode, bool], MeasuredResize]] = {
    (each.mode, each.to_ranks > each.from_ranks): each for each in (*stages.PUBLISHED, stages.RESTARTED)
}
"""16 to 20 GPUs (True) and back (False)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What the source leaves open, each with one value for all Elastic EP experiments.

    Attributes:
        base_s: of a step: everything that does not depend on the load of a rank.
        per_request_s: of a step, for each request that decodes on a rank.
        per_prefill_token_s: of a step, for each prompt token that a rank computes.
        seqs_per_rank: ``max_num_seqs`` of one rank.
        tokens_per_rank: ``max_num_batched_tokens`` of one rank.
        blocks_per_rank: KV blocks of one rank; a resize does not change them.
        balance_s: after the commit, until experts have moved.
        inputs: prompt tokens.
        outputs: tokens to make.
        retry: of clients that are told 503.
    """

    base_s: float = 0.035
    per_request_s: float = 5e-4
    per_prefill_token_s: float = 1e-4
    seqs_per_rank: int = 32
    tokens_per_rank: int = 2048
    blocks_per_rank: int = 8192
    balance_s: float = 10.0
    inputs: Normal = field(default_factory=lambda: Normal(2048, 512, 16, 8192))
    outputs: Normal = field(default_factory=lambda: Normal(512, 128, 16, 2048))
    retry: RetrySpec = field(default_factory=lambda: RetrySpec(attempts=6, backoff_s=0.25, factor=2.0))

    def size(self, ranks: int) -> ElasticSize:
        """All ranks together: each computes its share of requests and tokens, and waits for the others."""
        timing = LinearTiming(
            base_s=self.base_s,
            per_request_s=self.per_request_s / ranks,
            per_prefill_token_s=self.per_prefill_token_s / ranks,
        )
        return ElasticSize(
            ranks=ranks,
            timing=timing,
            kv_blocks=self.blocks_per_rank * ranks,
            max_num_seqs=self.seqs_per_rank * ranks,
            max_num_batched_tokens=self.tokens_per_rank * ranks,
            gpus=ranks,
        )

    def traffic(self, shape: Shape, *, seed: int, most: int | None = None) -> Generator:
        """Poisson arrivals of these lengths."""
        return Generator(shape, Independent(self.inputs, self.outputs), most=most, seed=seed)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All of this, with its origin."""
        chosen, tuned = Origin.CHOSEN, Origin.TUNED
        return (
            Parameter(name="LLM, GPUs, sizes", value="DeepSeek V4 Pro, GB200, TP 1, 16 and 20", origin=Origin.PAPER),
            Parameter(name="downtime and total of each resize", value="table above", origin=Origin.PAPER),
            Parameter(
                name="step, part without load",
                value=f"{self.base_s * 1e3:g} ms",
                origin=tuned,
                why="so that 16 GPUs carry a little less than 16 req/s: the scenario of elastic-ep-slo presumes that they "
                "keep the promise while the resize is prepared, and not for ever",
            ),
            Parameter(
                name="step, per decoding request and per prompt token of a rank",
                value=f"{self.per_request_s * 1e3:g} ms, {self.per_prefill_token_s * 1e3:g} ms",
                origin=chosen,
                why="49·10⁹ active parameters: 10¹¹ FLOP per token at about 10¹⁵ FLOP/s in use; decoding reads beside it",
            ),
            Parameter(
                name="capacity over ranks",
                value="each rank has its share of requests, tokens and KV cache",
                origin=chosen,
                why="data-parallel attention; fixed slots of experts per rank. One deployment was measured to gain less over TCP",
            ),
            Parameter(
                name="max_num_seqs, max_num_batched_tokens, KV blocks of a rank",
                value=f"{self.seqs_per_rank}, {self.tokens_per_rank}, {self.blocks_per_rank} × 16 tokens",
                origin=chosen,
                why="wide EP decodes few requests per rank; blocks never bind here",
            ),
            Parameter(
                name="experts move after the commit",
                value=f"{self.balance_s:g} s at the old speed",
                origin=chosen,
                why="the source says that capacity rises in two steps, not when the second comes",
            ),
            Parameter(
                name="input, output tokens",
                value=f"bounded normal {self.inputs.mean:g} ± {self.inputs.sd:g}, {self.outputs.mean:g} ± {self.outputs.sd:g}",
                origin=chosen,
            ),
            Parameter(
                name="clients that get 503 or are cut off",
                value=f"try again {self.retry.attempts} times, first after {self.retry.backoff_s:g} s, then twice as long each",
                origin=chosen,
                why="the body of the 503 says: please try again later; without it no deployment finishes every request",
            ),
        )  # fmt: skip


def resizes(balance_s: float) -> tuple[ResizeTiming, ...]:
    """Every published resize as the twin takes it; a restart finds experts where they belong."""
    return tuple(
        ResizeTiming(
            mode=mode,
            grow=grow,
            downtime_s=seconds.downtime_s,
            total_s=max(seconds.downtime_s, seconds.total_s),
            balance_s=0.0 if mode is ResizeMode.RESTART else balance_s,
        )
        for (mode, grow), seconds in PUBLISHED.items()
    )


def deployment(given: Deployment, ranks: int, *, gpus: int = 20, ttft_slo_s: float | None = None) -> TwinSpec:
    """One deployment that starts with so many ranks on a machine of so many GPUs."""
    sizes = tuple(given.size(each) for each in (16, 20))
    first = given.size(ranks)
    replica = ReplicaSpec(
        variant=VARIANT,
        service=_SERVICE,
        timing=first.timing,
        kv_blocks=first.kv_blocks,
        max_num_seqs=first.max_num_seqs,
        max_num_batched_tokens=first.max_num_batched_tokens,
        prefix_caching=False,
        gpus=ranks,
        gpu_type="GB200",
        min_replicas=1,
        max_replicas=1,
        elastic=ElasticSpec(initial_ranks=ranks, sizes=sizes, resizes=resizes(given.balance_s)),
    )
    router = RouterSpec(retry=given.retry)
    service = ServiceSpec(name=_SERVICE, router=router, ttft_slo_s=ttft_slo_s)
    return TwinSpec(services=(service,), replicas=(replica,), gpus={"GB200": gpus})
