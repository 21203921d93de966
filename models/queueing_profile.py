"""Queueing parameters with what they are known for: a row of a profile beside the measured ones."""

from __future__ import annotations

from pydantic import Field

from models.ids import AcceleratorId, LlmId, Name
from models.llm import Precision
from models.queueing import FitQuality, QueueingParameters
from models.value import Value
from models.variant import Parallelism, Role

__all__ = ["QueueingProfile"]


class QueueingProfile(Value):
    """Queueing parameters with what they are known for, and how well."""

    llm: LlmId = Field(description="LLM that was served")
    accelerator: AcceleratorId = Field(description="accelerator type it ran on")
    engine: Name | None = Field(None, description="inference engine, e.g. vllm, sglang; None: not said")
    engine_version: str | None = Field(
        None, max_length=200, description="version of the engine as the source writes it; None: not said"
    )
    precision: Precision = Field(Precision.BF16, description="precision of the weights")
    kv_precision: Precision = Field(Precision.BF16, description="precision of the KV cache")
    parallelism: Parallelism = Field(
        Parallelism(), description="how the replica was spread over accelerators"
    )
    role: Role = Field(Role.BOTH, description="phase that the parameters are for")
    parameters: QueueingParameters = Field(description="times and limits of one replica")
    fit: FitQuality | None = Field(None, description="how well they were fitted; None: stated, not fitted")
    source: str = Field("", max_length=200, description="report, file or publication they come from")
