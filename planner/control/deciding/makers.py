"""Who makes an accelerator, from the catalog: quotas count devices by maker."""

from __future__ import annotations

from functools import lru_cache

from planner.catalog import Catalog
from planner.planning import known_catalog

__all__ = ["maker_of"]


@lru_cache(maxsize=1)
def _catalog() -> Catalog:
    return known_catalog()


def maker_of(accelerator: str) -> str | None:
    """Who makes an accelerator type, slices and shares of it too, in small letters; None: nobody knows."""
    whole = accelerator.partition("-MIG-")[0].removesuffix("-shared")
    known = _catalog().find_accelerator(whole)
    return known.vendor.lower() if known is not None else None
