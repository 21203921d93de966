"""How large the KV cache of a replica will be that has never run: from the catalog, where it knows the model and the GPU.

Without it a small accelerator that is at zero looks as large as its engine's arguments allow.
"""

from __future__ import annotations

from functools import lru_cache

from models.engine import EngineArguments
from models.ids import AcceleratorId, VariantId
from models.variant import Parallelism, Variant
from planner.catalog import Catalog, load_catalog
from planner.errors import ConfigurationError
from planner.performance.memory import kv_capacity_tokens
from planner.settings import load_settings

__all__ = ["cache_tokens"]


@lru_cache(maxsize=1)
def _catalog() -> Catalog | None:
    try:
        return load_catalog(load_settings().catalog_dir)
    except ConfigurationError:
        # Whoever plans with it is told; here it only makes a guess better.
        return None


@lru_cache(maxsize=4096)
def cache_tokens(model: str, accelerator: str, *, gpus: int, arguments: EngineArguments) -> int | None:
    """Tokens of KV cache of one replica with weights as published; None: the catalog does not know, or nothing is left."""
    catalog = _catalog()
    if catalog is None:
        return None
    llm, kind = catalog.find_llm(model), catalog.find_accelerator(accelerator)
    if llm is None or kind is None or not 1 <= gpus <= 64:  # noqa: PLR2004 - nothing wider is served in one piece
        return None
    variant = Variant(
        id=VariantId("asleep"),
        accelerator=AcceleratorId(kind.id),
        parallelism=Parallelism(tp=gpus),
        engine_arguments=arguments,
    )
    return kv_capacity_tokens(llm, kind, variant).kv_tokens or None
