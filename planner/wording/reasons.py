"""Every reason of the planner, as a sentence with its facts."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Final

from models.explanation import Fact, Reason
from models.problem import CostUnit
from planner.wording.limits import limit_phrase
from planner.wording.numbers import number, quantity

__all__ = ["reason_sentence"]

# Per reason the sentences from the most to the least telling: the first one whose facts are all known is used.
# The last needs no fact.
_SENTENCES: Final[dict[Reason, tuple[str, ...]]] = {
    Reason.NO_POOL_WITH_ACCELERATOR: (
        "it needs {needs} and the pool has {has}",
        "no pool has the accelerator {accelerator}",
        "no pool has its accelerator",
    ),
    Reason.POOL_NOT_ALLOWED: (
        "the service may not use pool {pool}: {rule}",
        "the service may not use this pool",
    ),
    Reason.ACCELERATOR_NOT_ALLOWED: (
        "the service may not use {accelerator}: {rule}",
        "the service may not use this accelerator",
    ),
    Reason.REGION_NOT_ALLOWED: (
        "the service may not run in region {region}: {rule}",
        "the service may not run in this region",
    ),
    Reason.CLUSTER_NOT_ALLOWED: (
        "the service may not run in cluster {cluster}: {rule}",
        "the service may not run in this cluster",
    ),
    Reason.RESIDENCY_NOT_ALLOWED: (
        "its data may be in {allowed} and the pool is in {residency}",
        "its data may be in {allowed} and nobody states where the pool is",
        "its data may not be in the jurisdiction of this pool",
    ),
    Reason.PINNED_ELSEWHERE: (
        "the service is pinned to {runs_on}, which runs now, and this is {accelerator}",
        "the service is pinned to the accelerator types that run now",
    ),
    Reason.WEIGHTS_DO_NOT_FIT: (
        "the weights need {weight_bytes_per_accelerator} of the {memory_bytes} that each GPU has, {missing_bytes_per_accelerator} are missing; TP{fitting_tp} or {fitting_weights} weights would fit",
        "the weights need {weight_bytes_per_accelerator} of the {memory_bytes} that each GPU has, {missing_bytes_per_accelerator} are missing; TP{fitting_tp} would fit",
        "the weights need {weight_bytes_per_accelerator} of the {memory_bytes} that each GPU has, {missing_bytes_per_accelerator} are missing; {fitting_weights} weights would fit",
        "the weights need {weight_bytes_per_accelerator} of the {memory_bytes} that each GPU has, and the cache its own",
        "the weights do not fit into the memory of its GPUs",
    ),
    Reason.REQUEST_DOES_NOT_FIT: (
        "one request needs {request_tokens} of KV cache and a replica holds {kv_tokens_per_rank} of one request",
        "one request needs {request_tokens} of KV cache and the trigger leaves {kv_tokens_inside_trigger}",
        "not even one request fits into its KV cache",
    ),
    Reason.CONTEXT_TOO_LONG: (
        "a request has {needed_tokens} and the LLM takes at most {max_context_tokens}",
        "requests are longer than the LLM takes",
    ),
    Reason.NO_MEASUREMENT: (
        "no measurement covers requests of {asked_shape} tokens (nearest: {nearest_shapes}) and no capacity is given",
        "no measurement covers it and no capacity is given",
    ),
    Reason.PERCENTILE_NOT_MEASURED: (
        "the promise is at {asked} and the measurements state {measured}",
        "the percentile of the promise was not measured",
    ),
    Reason.SLO_NOT_MET: (
        "TTFT {best_ttft_s} and ITL {best_itl_s} at best, promised are {target_ttft_s} and {target_itl_s}",
        "TTFT is {best_ttft_s} at best, promised are {target_ttft_s}",
        "ITL is {best_itl_s} at best, promised are {target_itl_s}",
        "a request takes {best_e2e_s} at best, promised are {target_e2e_s}",
        "it does not keep the latency promises at any rate",
    ),
    Reason.SHAPE_NOT_CARRIED: (
        "its stated rates say that it carries no requests of {asked_shape} tokens inside the promises",
        "its stated rates say that it carries no such requests inside the promises",
    ),
    Reason.SIZE_NOT_REACHABLE: (
        "{from_ranks} ranks cannot become {to_ranks} in place: {because}",
        "this size cannot be reached in place",
    ),
    Reason.POD_LARGER_THAN_NODE: (
        "a pod needs {gpus_per_pod} and the largest node has {largest_node_gpus}",
        "a pod needs more GPUs than any node has",
    ),
    Reason.UNKNOWN_PRICE: (
        "the price of {accelerator} is not known",
        "its price is not known",
    ),
    Reason.UNKNOWN_POWER: (
        "the power of {accelerator} is not known and a cap speaks of its pool",
        "its power is not known and a cap speaks of its pool",
    ),
    Reason.DEARER: (
        "it costs {cost_per_rps} per req/s and {instead} costs {instead_cost_per_rps}",
        "what was chosen costs less",
    ),
    Reason.WAY_COSTS: (
        "from {from_ranks} to {to_ranks} ranks by {mode} costs {once} once: {hindered} requests hindered in "
        "{downtime_s}, {idle_gpu_h} GPU-h idle",
        "the way to this size costs more than it spares",
    ),
    Reason.LIMIT_BINDS: ("{limit_of_family} left no room for it", "a limit left no room for it"),
    Reason.NOT_NEEDED: ("whole replicas, headroom or a later level of the objective tipped the balance",),
    Reason.GPUS_EXHAUSTED: (
        "{wanted} GPUs are wanted and {free} are free",
        "no GPUs are left",
    ),
    Reason.QUOTA_EXHAUSTED: (
        "{wanted} GPUs are wanted and the quota is {quota}",
        "the quota is used up",
    ),
    Reason.MAX_REPLICAS: ("at most {max_replicas} replicas are allowed", "no more replicas are allowed"),
    Reason.MIN_REPLICAS: ("at least {min_replicas} replicas must stay", "no fewer replicas are allowed"),
    Reason.SCALE_IN_NOT_SAFE: (
        "only {non_saturated} replicas are not saturated and {needed} must be before one is taken away",
        "taking replicas away is not safe now",
    ),
    Reason.STEP_LIMIT: ("at most {step} replicas may change at once", "the step limit is reached"),
    Reason.SATURATED: ("{saturated} of {replicas} replicas are saturated", "replicas are saturated"),
    Reason.SPARE_BELOW_TRIGGER: (
        "the mean distance to saturation is {spare} and scale-up starts below {trigger}",
        "the mean distance to saturation is below the trigger",
    ),
    Reason.STEADY: ("load and capacity are in balance",),
}

_UNITS: Final = (
    ("gpus_per_pod", "GPU"),
    ("largest_node_gpus", "GPU"),
    ("_usd_per_h", "$/h"),
    ("_bytes_per_accelerator", "bytes"),
    ("_bytes", "bytes"),
    ("_tokens_per_rank", "tokens"),
    ("_tokens_inside_trigger", "tokens"),
    ("_tokens", "tokens"),
    ("_per_rps", ""),
    ("_rps", "req/s"),
    ("_gpus", ""),
    ("_share", ""),
    ("_w", "W"),
    ("_s", "s"),
)


def reason_sentence(
    reason: Reason, facts: Mapping[str, Fact], cost_unit: CostUnit = CostUnit.RELATIVE
) -> str:
    """The reason with its facts, without a capital or a full stop; facts the sentence does not use follow in brackets."""
    money = "$/h" if cost_unit is CostUnit.USD_PER_H else ""
    known = {name: _written(name, fact, money=money) for name, fact in facts.items() if fact is not None}
    if {"family", "limit"} <= known.keys():
        known["limit_of_family"] = limit_phrase(known.pop("family"), tuple(known.pop("limit").split(" / ")))
    template = next(text for text in _SENTENCES[reason] if _fields(text) <= known.keys())
    rest = [f"{_spoken(name)} {text}" for name, text in known.items() if name not in _fields(template)]
    return template.format_map(known) + (f" ({', '.join(rest)})" if rest else "")


def _fields(template: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(template) if field is not None}


def _written(name: str, fact: Fact, *, money: str) -> str:
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return str(fact)
    unit = next((unit for ending, unit in _UNITS if name.endswith(ending)), "")
    if unit == "bytes":
        return f"{number(fact / 2**30, 3)} GiB"
    if name == "once":
        return f"{number(fact)} {money.removesuffix('/h')}".strip()
    if name.endswith("_per_rps"):
        return f"{number(fact)} {money}".strip()
    return quantity(fact, unit) if unit == "GPU" else f"{number(fact)} {unit}".strip()


def _spoken(name: str) -> str:
    ending = next((ending for ending, _ in _UNITS if name.endswith(ending)), "")
    unit = " per req/s" if ending == "_per_rps" else ""
    return name.removesuffix(ending).replace("_", " ") + unit
