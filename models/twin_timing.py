"""How long one step of an inference engine takes, in the forms that the digital twin can replay."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.units import Ratio, Seconds
from models.value import Value

__all__ = [
    "Curve",
    "Grid",
    "LinearTiming",
    "QueueingTiming",
    "RooflineTiming",
    "SimulatorTiming",
    "TableTiming",
    "Timing",
]


class QueueingTiming(Value):
    """t = α + β·(tokens computed) + γ·(tokens read from the KV cache): the iteration form of the queueing model.

    A prefill chunk that ends at context k reads k tokens, a decoding request all it has.
    """

    kind: Literal["queueing"] = "queueing"
    alpha_ms: Ratio
    beta_ms_per_token: Ratio
    gamma_ms_per_token: Ratio = 0.0


class LinearTiming(Value):
    """t = base + d·(decoding requests) + p·(prefill tokens) + r·(KV tokens of decoding requests) + a·(attended pairs).

    Attended pairs: a prefill chunk of c tokens on a context of k adds c·(k + c/2). A step that prefills takes
    ``prefill_step_s`` longer, whatever its size: engines replay a recorded graph only where all requests decode.
    """

    kind: Literal["linear"] = "linear"
    base_s: Seconds
    per_request_s: Seconds = 0.0
    per_prefill_token_s: Seconds = 0.0
    per_kv_token_s: Seconds = 0.0
    per_pair_s: Seconds = 0.0
    prefill_step_s: Seconds = 0.0


class RooflineTiming(Value):
    """t = overhead + max(compute, memory); compute and memory are linear in the work of the step.

    compute = (decoding requests + prefill tokens)·per_token + pairs·per_pair, where a decoding request attends to
    all it has; memory = weights + (KV tokens read)·per_kv_token.
    """

    kind: Literal["roofline"] = "roofline"
    overhead_s: Seconds = 0.0
    compute_per_token_s: Seconds
    compute_per_pair_s: Seconds = 0.0
    weights_s: Seconds
    per_kv_token_s: Seconds = 0.0


def _rising(values: tuple[float, ...]) -> bool:
    return all(low < high for low, high in pairwise(values))


class Curve(Value):
    """Times at points; straight between them, and the last slope beyond them."""

    at: tuple[Ratio, ...] = Field(min_length=1, max_length=10_000)
    seconds: tuple[Seconds, ...] = Field(min_length=1, max_length=10_000)

    @model_validator(mode="after")
    def _matching(self) -> Self:
        if len(self.at) != len(self.seconds) or not _rising(self.at):
            raise ValueError("give one time per point, points ascending")
        return self


class Grid(Value):
    """Times over rows × columns; bilinear between them, the nearest edge's slope beyond them."""

    rows: tuple[Ratio, ...] = Field(min_length=1, max_length=2_000)
    columns: tuple[Ratio, ...] = Field(min_length=1, max_length=2_000)
    seconds: tuple[tuple[Seconds, ...], ...]

    @model_validator(mode="after")
    def _matching(self) -> Self:
        full = len(self.seconds) == len(self.rows) and all(len(r) == len(self.columns) for r in self.seconds)
        if not full or not _rising(self.rows) or not _rising(self.columns):
            raise ValueError("give one time per row and column, rows and columns ascending")
        return self


class TableTiming(Value):
    """t = overhead + tokens(all tokens) + sequences(requests) + decode(requests, mean context) + prefill(chunk, context).

    What is measured kernel by kernel, or as a table of whole steps (then only ``decode`` and ``tokens`` are given).
    Attention of decoding requests may take longer in a step that prefills too, since one kernel does both: then it is
    ``mixed_decode`` + ``mixed_per_product_s``·(requests)·(prefill tokens) in place of ``decode``.
    """

    kind: Literal["table"] = "table"
    overhead_s: Seconds = 0.0
    tokens: Curve | None = Field(None, description="over all tokens of the step (prefill and decode)")
    sequences: Curve | None = Field(None, description="over requests that yield a token in the step")
    decode: Grid | None = Field(None, description="rows: decoding requests, columns: their mean context")
    prefill: Grid | None = Field(None, description="rows: tokens of the chunk, columns: context before it")
    mixed_decode: Grid | None = Field(
        None, description="as decode, in steps that prefill too; none: as decode"
    )
    mixed_per_product_s: Seconds = 0.0

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.tokens is None and self.decode is None and self.sequences is None:
            raise ValueError("give tokens, sequences or decode")
        return self


class SimulatorTiming(Value):
    """Latency of llm-d-inference-sim (@eec055a): whole requests with a worker each, no steps.

    The load factor f(n) = 1 + (F - 1)(n - 1)/(max_num_seqs - 1) multiplies everything but KV transfer. Means and
    deviations are cut to whole milliseconds, draws are held in [0.3, 1.7]·mean and cut again. Only full blocks of prompts
    are in the KV cache; what does not fit beside those in use fails at once.
    """

    kind: Literal["simulator"] = "simulator"
    calculator: Literal["", "constant", "per-token"] = ""
    ttft_ms: Ratio = 0.0
    ttft_sd_ms: Ratio = 0.0
    prefill_overhead_ms: Ratio = 0.0
    prefill_ms_per_token: Ratio = 0.0
    prefill_sd_ms: Ratio = 0.0
    itl_ms: Ratio = 0.0
    itl_sd_ms: Ratio = 0.0
    kv_transfer_ms: Ratio = Field(0.0, description="in place of prefill where that was done elsewhere")
    kv_transfer_sd_ms: Ratio = 0.0
    kv_transfer_ms_per_token: Ratio = 0.0
    kv_transfer_tokens_sd_ms: Ratio = 0.0
    time_factor_under_load: Ratio = Field(1.0, ge=1)
    max_waiting: int = Field(
        1000, ge=0, description="a request that finds so many waiting is refused with 429"
    )
    kv_cache: bool = Field(
        False, description="enable-kvcache: full prompt blocks are counted, too many fail with 500"
    )
    whole_ms: bool = Field(
        True, description="False: times are not cut to whole ms (a departure, for queueing theory)"
    )

    @property
    def constant_prefill(self) -> bool:
        """Whether prefill takes a constant time, by the precedence of that simulator."""
        if self.calculator:
            return self.calculator == "constant"
        return self.ttft_ms > 0 or self.ttft_sd_ms > 0

    @property
    def constant_transfer(self) -> bool:
        """Whether fetching a KV cache takes a constant time, by the same precedence."""
        if self.calculator:
            return self.calculator == "constant"
        return self.kv_transfer_ms > 0 or self.kv_transfer_sd_ms > 0

    @model_validator(mode="after")
    def _deviations(self) -> Self:
        pairs = (
            ("ttft", self.ttft_ms, self.ttft_sd_ms),
            ("itl", self.itl_ms, self.itl_sd_ms),
            ("kv_transfer", self.kv_transfer_ms, self.kv_transfer_sd_ms),
        )
        for name, mean, sd in pairs:
            if sd > 0.3 * mean:
                raise ValueError(f"{name}_sd_ms {sd:g} must not exceed 30 % of {name}_ms {mean:g}")
        return self


Timing = Annotated[
    QueueingTiming | LinearTiming | RooflineTiming | TableTiming | SimulatorTiming,
    Field(discriminator="kind"),
]
