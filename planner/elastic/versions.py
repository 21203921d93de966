"""What each version of an engine can do about its own size.

Source: released vLLM 0.19.1, 0.23.0, 0.27.1, 0.30.0, 0.31.0, 0.32.0 and 0.33.0, SGLang 0.5.23, Dynamo 1.6.1. A version
between two that were read counts as the older one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from models.elastic import Dialect, ElasticEngine, ResizeMode

__all__ = ["FIRST_ELASTIC", "Traits", "mode_of", "traits_of", "version_of"]

_NIXL_EP: Final = "nixl_ep"
FIRST_ELASTIC: Final = (0, 19)
"""The oldest version that was read; its resize serves nobody from the call to its end."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What a version does.

    Attributes:
        prepares: a resize is prepared while it serves, and committed in a moment.
        keeps_graphs: existing workers keep their CUDA graphs, with NIXL EP.
        checks_sizes: it refuses sizes below the floor and above ``--elastic-ep-max-dp-size`` with 400.
        rank_cap: expert-parallel ranks at most, with NIXL EP; None: as the maximum size says.
        resets_redundancy: it loses count of redundant experts, so that sizes below the launch size are unsafe.
        external: one API server for each rank may be resized.
        tells_phase: the status call tells phase, epoch, error and wanted size.
        grows_only: it cannot shrink in place.
    """

    prepares: bool = True
    keeps_graphs: bool = True
    checks_sizes: bool = True
    rank_cap: int | None = None
    resets_redundancy: bool = False
    external: bool = False
    tells_phase: bool = False
    grows_only: bool = False


_VLLM: Final[tuple[tuple[tuple[int, int], Traits], ...]] = (
    ((0, 33), Traits(external=True, tells_phase=True)),
    ((0, 30), Traits()),
    ((0, 27), Traits(keeps_graphs=False, checks_sizes=False, rank_cap=32)),
    (
        FIRST_ELASTIC,
        Traits(prepares=False, keeps_graphs=False, checks_sizes=False, rank_cap=32, resets_redundancy=True),
    ),
)
_SGLANG: Final = Traits(keeps_graphs=False, tells_phase=True, grows_only=True)


def version_of(text: str) -> tuple[int, int]:
    """Major and minor of ``0.33.0``."""
    major, minor, *_ = text.split(".")
    return int(major), int(minor)


def traits_of(engine: ElasticEngine) -> Traits | None:
    """What this engine does; None: it is older than elastic deployments."""
    if engine.dialect is Dialect.SGLANG:
        return _SGLANG
    wanted = version_of(engine.version)
    return next((traits for since, traits in _VLLM if wanted >= since), None)


def mode_of(engine: ElasticEngine) -> ResizeMode | None:
    """Which way its resize goes: A blocks, B prepares while it serves, C keeps graphs too; None: it has none."""
    traits = traits_of(engine)
    if traits is None or not engine.elastic:
        return None
    if not traits.prepares:
        return ResizeMode.BLOCKING
    reuses = traits.keeps_graphs and engine.all2all_backend == _NIXL_EP
    return ResizeMode.ASYNC_GRAPH_REUSE if reuses else ResizeMode.ASYNC
