"""Small scenarios for tests of sizing, a catalog of two accelerators, and a rate that is a table.

A bare ``a_scenario()`` is one service ``chat`` at 10 req/s with one variant ``small`` of one H100, and a pool
``east`` of two nodes with 8 H100s each at 2 $/h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from models.explanation import Reason
from models.fleet import RunningVariant
from models.hardware import Accelerator, Pool
from models.llm import Llm
from models.performance import Origin, Rating, RatingQuestion, Unrated
from models.problem import Problem
from models.scenario import Scenario
from models.variant import Variant
from models.workload import Bucket, Service
from planner.catalog import Catalog
from planner.sizing import Rate, size

__all__ = [
    "CATALOG",
    "a_node_entry",
    "a_pool_entry",
    "a_rating",
    "a_running",
    "a_scenario",
    "a_service",
    "a_shape",
    "a_variant",
    "an_accelerator",
    "one_rps",
    "rates",
    "sized",
]


def an_accelerator(name: str, **fields: Any) -> Accelerator:
    """An accelerator of 80 GB that draws 700 W."""
    figures = {"id": name, "vendor": "acme", "memory_bytes": 80 * 10**9, "tdp_w": 700.0}
    return Accelerator.model_validate(figures | fields)


def an_llm(name: str, **fields: Any) -> Llm:
    figures = {
        "id": name,
        "parameters": 8 * 10**9,
        "layers": 32,
        "attention": {"kind": "gqa", "kv_heads": 8, "head_dim": 128},
    }
    return Llm.model_validate(figures | fields)


CATALOG = Catalog(
    accelerators={
        "H100": an_accelerator("H100", aliases=("NVIDIA-H100",), idle_w=100.0),
        "A100": an_accelerator("A100", tdp_w=400.0, usd_per_h=1.5),
    },
    llms={"llama-8b": an_llm("llama-8b", aliases=("meta/Llama-8B",)), "other": an_llm("other")},
    profiles={},
)


def a_shape(name: str = "all", rps: float = 10.0, **fields: Any) -> Bucket:
    """A bucket of 1,000 input and 200 output tokens."""
    return Bucket.model_validate(
        {"id": name, "arrival_rps": rps, "input_tokens": 1000, "output_tokens": 200} | fields
    )


def a_variant(name: str = "small", **fields: Any) -> Variant:
    """A variant of one H100."""
    return Variant.model_validate({"id": name, "accelerator": "H100"} | fields)


def a_service(name: str = "chat", **fields: Any) -> Service:
    """A service at 10 req/s with one variant."""
    return Service.model_validate(
        {"id": name, "llm": "llama-8b", "buckets": (a_shape(),), "variants": (a_variant(),)} | fields
    )


def a_node_entry(name: str = "n", gpus: int = 8, **fields: Any) -> dict[str, Any]:
    return {"id": name, "gpus": gpus} | fields


def a_pool_entry(name: str = "east", **fields: Any) -> Pool:
    """A pool of two nodes with 8 H100s each at 2 $/h."""
    figures = {
        "id": name,
        "accelerator": "H100",
        "nodes": (a_node_entry(f"{name}-n", count=2),),
        "offering": {"usd_per_h": 2.0},
    }
    return Pool.model_validate(figures | fields)


def a_running(replicas: int = 2, **fields: Any) -> RunningVariant:
    """Replicas of ``chat/small@east``."""
    place = {"service": "chat", "variant": "small", "pool": "east", "replicas": replicas}
    return RunningVariant.model_validate(place | fields)


def a_scenario(*running: RunningVariant, **fields: Any) -> Scenario:
    """A scenario with these rows of the fleet; what is not given has one default member."""
    figures = {
        "name": "test",
        "services": (a_service(),),
        "pools": (a_pool_entry(),),
        "fleet": {"running": running},
    }
    return Scenario.model_validate(figures | fields)


def a_rating(rated: float = 1.0, **fields: Any) -> Rating:
    """A measured rating; ``surge_rps`` equals ``rated`` unless it is given."""
    figures = {"rated_rps": rated, "surge_rps": rated, "origin": Origin.MEASURED, "source": "table"}
    return Rating.model_validate(figures | fields)


def one_rps(_question: RatingQuestion) -> Rating | Unrated:
    """Every replica carries 1 req/s of everything."""
    return a_rating()


def rates(table: Mapping[Any, Rating | Reason], key: Callable[[RatingQuestion], Any]) -> Rate:
    """Ratings from a table by whatever ``key`` reads off the question."""

    def rate(question: RatingQuestion) -> Rating | Unrated:
        answer = table[key(question)]
        return Unrated(reason=answer, facts={"asked": True}) if isinstance(answer, Reason) else answer

    return rate


def sized(scenario: Scenario, rate: Rate = one_rps, **options: Any) -> Problem:
    """The problem of a scenario with the small catalog."""
    return size(scenario, CATALOG, rate=rate, **options)
