"""What may be set on an endpoint picker (EPP) while a service is at its cap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from models.ids import Name
from models.units import PositiveCount, PositiveSeconds
from models.value import Value

__all__ = ["CapSettings", "EppOptions", "EppService"]

_MOST_PRIORITY: Final = 2**31 - 1
_Priority = Annotated[int, Field(ge=-_MOST_PRIORITY, le=_MOST_PRIORITY)]
_Quantity = Annotated[str, Field(pattern=r"^[1-9]\d{0,11}(k|M|G|T|Ki|Mi|Gi|Ti)?$")]


class CapSettings(Value):
    """Settings of an EndpointPickerConfig at the cap; what is None stays as it is."""

    flow_control: bool = Field(
        True, description="set the feature gate: requests wait in the picker, not in engines"
    )
    max_requests: PositiveCount | None = Field(None, description="requests that may wait in the picker")
    max_bytes: _Quantity | None = Field(None, description="bytes of them, as Kubernetes writes it: 512Mi")
    request_ttl_s: PositiveSeconds | None = Field(
        None, le=86_400, description="longest wait in the picker, s; later an answer would be worth nothing"
    )
    negative_requests: PositiveCount | None = Field(
        None, description="requests of negative priority that may wait; 1: they are refused almost at once"
    )
    queue_depth: PositiveCount | None = Field(
        1, le=10**6, description="waiting requests of an engine at which it counts as saturated"
    )
    kv_usage: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="KV-cache usage at which an engine counts as saturated, 0..1"
    )


class EppService(Value):
    """One service, and what its endpoint picker is told at the cap."""

    service: str = Field(
        pattern=r"^[^/\s]+/\S+$", max_length=512, description="namespace/model, as observations name it"
    )
    cluster: Name | None = Field(None, description="None: the only one there is")
    namespace: Name | None = Field(None, description="of the objects below; None: that of the service")
    priorities: Mapping[Name, _Priority] = Field(
        {}, max_length=1000, description="priority at the cap by InferenceObjective; takes effect at once"
    )
    config_map: Name | None = Field(None, description="ConfigMap that holds the EndpointPickerConfig")
    key: str | None = Field(
        None, max_length=253, description="key in it; None: the only one that holds such a configuration"
    )
    settings: CapSettings = Field(CapSettings(), description="of that configuration at the cap")
    deployment: Name | None = Field(
        None,
        description="Deployment of the picker, restarted when its configuration changes, since it reads it at its start; "
        "None: the settings wait for its next start. Requests that wait in a picker are lost with it",
    )

    @property
    def where(self) -> str:
        """Namespace of the objects."""
        return self.namespace or self.service.partition("/")[0]

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.priorities and self.config_map is None:
            raise ValueError("sets nothing; allowed: priorities, config_map, or both")
        if self.config_map is None and (self.key is not None or self.deployment is not None):
            raise ValueError("key and deployment without a config_map; allowed: config_map beside them")
        return self


class EppOptions(Value):
    """Options of the actuator ``epp``."""

    services: tuple[EppService, ...] = Field(max_length=10_000, description="services that it looks after")
    after_s: PositiveSeconds = Field(
        30.0, le=3600, description="time at the cap after which settings are made, s"
    )
    room_s: PositiveSeconds = Field(
        300.0, le=86_400, description="time with room after which they are put back, s"
    )

    @model_validator(mode="after")
    def _once(self) -> Self:
        if not self.services:
            raise ValueError("no services; allowed: at least one")
        uses = Counter((each.cluster, each.service) for each in self.services)
        twice = sorted({service for (_, service), count in uses.items() if count > 1})
        if twice:
            raise ValueError(f"more than once: {', '.join(twice)}; allowed: each service once")
        return self
