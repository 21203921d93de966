"""Inferno's documents as values. Keys count without case, as Go reads them; keys that we do not use are passed over.

Units there: ms, requests per minute, cents per hour, GB, GB/s, W.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, ConfigDict, Field

from models.units import Integer
from models.value import Value

__all__ = [
    "Accelerator",
    "Allocation",
    "Capacity",
    "Load",
    "Perf",
    "PerfParms",
    "Power",
    "Server",
    "ServiceClass",
    "Target",
    "Tuning",
]

Number = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Whole = Annotated[Integer, Field(ge=0, le=10**9)]
Units = Annotated[Integer, Field(ge=1, le=4096)]
Text = Annotated[str, Field(min_length=1, max_length=200)]


class _Document(Value):
    """Keys are lower case here; further ones do not matter."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Power(_Document):
    """Draw of an accelerator, W."""

    idle: Number | None = None
    full: Number | None = None


class Accelerator(_Document):
    """Units of one type that are taken together."""

    name: Text
    type: Text
    multiplicity: Units = 1
    memory_gb: Positive = Field(validation_alias="memsize")
    bandwidth_gb_s: Positive | None = Field(None, validation_alias="membw")
    power: Power = Power()
    cents_per_h: Number = Field(validation_alias="cost")


class Capacity(_Document):
    """Units of a type that there are."""

    type: Text
    count: Whole


class PerfParms(_Document):
    """Parameters of an iteration, ms."""

    alpha: Number
    beta: Number
    gamma: Number


class Perf(_Document):
    """A model on an accelerator."""

    name: Text
    accelerator: Text = Field(validation_alias=AliasChoices("acc", "accelerator"))
    count: Units = Field(1, validation_alias="acccount")
    max_batch: Annotated[Whole, Field(ge=1, le=10**5)] = Field(validation_alias="maxbatchsize")
    at_tokens: Whole = Field(0, validation_alias="attokens")
    parameters: PerfParms = Field(validation_alias="perfparms")


class Target(_Document):
    """Promises of a class for a model; 0: none."""

    model: Text
    itl_ms: Number = Field(0.0, validation_alias="slo-itl")
    ttft_ms: Number = Field(0.0, validation_alias="slo-ttft")
    tokens_per_s: Number = Field(0.0, validation_alias="slo-tps")


class ServiceClass(_Document):
    """Promises by model; a smaller priority number is more important."""

    name: Text
    priority: Annotated[Integer, Field(ge=0, le=10**6)] = 100
    targets: tuple[Target, ...] = Field((), validation_alias="modeltargets")


class Load(_Document):
    """Traffic of a server."""

    requests_per_min: Annotated[float, Field(ge=0, le=6e8, allow_inf_nan=False)] = Field(
        validation_alias="arrivalrate"
    )
    input_tokens: Annotated[float, Field(ge=0, le=1e8, allow_inf_nan=False)] = Field(
        validation_alias="avgintokens"
    )
    output_tokens: Annotated[float, Field(ge=0, le=1e8, allow_inf_nan=False)] = Field(
        validation_alias="avgouttokens"
    )


class Allocation(_Document):
    """What a server has now."""

    accelerator: str = ""
    replicas: Whole = Field(0, validation_alias="numreplicas")
    load: Load


class Server(_Document):
    """A model that is served under a class."""

    name: Text
    service_class: Text = Field(validation_alias="class")
    model: Text
    keep_accelerator: bool = Field(False, validation_alias="keepaccelerator")
    min_replicas: Whole = Field(0, validation_alias="minnumreplicas")
    max_batch: Annotated[Whole, Field(le=10**5)] = Field(0, validation_alias="maxbatchsize")
    max_queue: Annotated[Whole, Field(le=10**5)] = Field(0, validation_alias="maxqueuesize")
    current: Allocation = Field(validation_alias="currentalloc")


class Tuning(_Document):
    """Flags of the optimizer that change what is asked for."""

    unlimited: bool = False
    heterogeneous: bool = False
