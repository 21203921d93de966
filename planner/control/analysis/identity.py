"""Who a variant and a service are, over clusters and from cycle to cycle."""

from __future__ import annotations

from typing import NamedTuple

from models.observation import VariantObservation

__all__ = ["VariantRef", "ref_of"]


class VariantRef(NamedTuple):
    """One variant: the name of its scaler, where it is. ``cluster`` is empty where there is only one."""

    cluster: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``cluster/namespace/name``, or ``namespace/name``."""
        return "/".join(part for part in self if part)


def ref_of(variant: VariantObservation) -> VariantRef:
    """The identity of a variant that was observed."""
    return VariantRef(*variant.key)
