"""The shape of a scenario file: short keys and short forms by place. docs/scenario.md says the same in words."""

from __future__ import annotations

from typing import Final

from models.elastic import ElasticDeployment, ElasticEngine, MeasuredResize, RankRate
from models.fleet import Fleet, RunningReplica, RunningVariant
from models.hardware import Accelerator, Node, NodeGrowth, Offering, Pool, PowerDomain, Quota
from models.llm import GroupedQueryAttention, LatentAttention, Llm, Moe
from models.performance import PerformanceChoice
from models.queueing import QueueingParameters, Speculation
from models.saturation import Headroom, SaturationThresholds
from models.scenario import Limits, Objective, Scenario
from models.variant import Capacity, Cost, KubernetesObject, Parallelism, Quantization, Variant
from models.workload import AllowedPlaces, Bucket, PrefillDecodeRatio, Service, Slo, Survive
from planner.scenario import shorthands
from planner.scenario.shape import Leaf, Many, Place

__all__ = ["SCENARIO"]

_LIST: Final = Leaf(shorthands.one_or_more)
_REPLICA_BOUNDS: Final = {"min": "min_replicas", "max": "max_replicas"}

_ELASTIC: Final = Place(
    ElasticDeployment,
    keys={"request_value": "request_value_usd"},
    fields={
        "rates": Many(Place(RankRate, keys={"rated": "rated_rps", "surge": "surge_rps", "kv": "kv_tokens"}), "rate"),
        "measured": Many(
            Place(
                MeasuredResize,
                keys={
                    "from": "from_ranks", "to": "to_ranks", "downtime": "downtime_s", "total": "total_s", "balance": "balance_s",
                },
            ),
            "resize",
        ),
        "engine": Place(ElasticEngine, short=shorthands.under("version")),
    },
)  # fmt: skip

_VARIANT: Final = Place(
    Variant,
    keys=_REPLICA_BOUNDS
    | {
        "tp": "parallelism.tp", "pp": "parallelism.pp", "dp": "parallelism.dp", "ep": "parallelism.ep",
        "weights": "quantization.weights", "kv_cache": "quantization.kv_cache",
        "pods": "pods_per_replica", "memory": "memory_utilization", "activation_reserve": "activation_reserve_bytes",
        "startup": "startup_s", "startup_cost": "startup_cost_usd",
        "step_up": "max_step_up", "step_down": "max_step_down",
    },
    fields={
        "parallelism": Place(Parallelism, short=shorthands.parallelism),
        "quantization": Place(Quantization, short=shorthands.under("weights")),
        "cost": Place(Cost, keys={"price": "usd_per_h"}, short=shorthands.cost, whole=True),
        "capacity": Place(
            Capacity,
            keys={
                "rated": "rated_rps", "surge": "surge_rps", "kv": "kv_tokens", "residence": "residence_s", "power": "power_w",
            },
            short=shorthands.under("rated_rps"),
        ),
        "queueing": Place(
            QueueingParameters,
            keys={"alpha": "alpha_ms", "beta": "beta_ms_per_token", "gamma": "gamma_ms_per_token"},
        ),
        "speculation": Place(Speculation, keys={"draft": "draft_tokens"}),
        "pools": _LIST,
        "object": Place(KubernetesObject, short=shorthands.under("name")),
        "elastic": _ELASTIC,
    },
    default="variant",
)  # fmt: skip

_SERVICE: Final = Place(
    Service,
    keys=_REPLICA_BOUNDS | {"traffic": "buckets"},
    fields={
        "buckets": Many(
            Place(
                Bucket,
                keys={
                    "rate": "arrival_rps", "input": "input_tokens", "output": "output_tokens", "cached": "cached_share",
                },
            ),
            "bucket", single="all",
        ),
        "slo": Place(
            Slo,
            keys={"ttft": "ttft_s", "itl": "itl_s", "tpot": "itl_s", "e2e": "e2e_s"},
            fields={"at": Leaf(shorthands.percentile)},
        ),
        "thresholds": Place(SaturationThresholds, keys={"min_non_saturated": "min_non_saturated_for_scale_in"}),
        "headroom": Place(
            Headroom, keys={"burst": "burst_rps", "kv": "kv_tokens"}, short=shorthands.headroom, whole=True
        ),
        "places": Place(
            AllowedPlaces,
            fields={
                name: _LIST
                for name in AllowedPlaces.model_fields
                if name.startswith(("allow_", "deny_")) or name == "residency"
            },
        ),
        "survive": Place(
            Survive, keys={"domains": "failure_domains"}, fields={"failure_domains": _LIST}, short=shorthands.under("share")
        ),
        "ratio": Place(PrefillDecodeRatio),
        "variants": Many(_VARIANT, "variant"),
    },
    default="service",
)  # fmt: skip

_POOL: Final = Place(
    Pool,
    keys={"price": "offering.usd_per_h", "market": "offering.market", "node_overhead": "node_overhead_w"},
    fields={
        "nodes": Many(
            Place(Node, keys={"foreign": "foreign_gpus"}, short=shorthands.nodes), "node", single="{owner}"
        ),
        "growth": Place(
            NodeGrowth,
            keys={
                "gpus": "gpus_per_node", "max": "max_nodes", "price": "usd_per_node_h", "overhead": "overhead_w",
            },
        ),
        "offering": Place(Offering, keys={"price": "usd_per_h"}, short=shorthands.under("market")),
    },
    default="pool",
)  # fmt: skip

_LIMITS: Final = Place(
    Limits,
    keys={"spend": "spend_usd_per_h"},
    fields={
        "quotas": Many(Place(Quota), "quota", single="quota"),
        "power": Many(
            Place(PowerDomain, keys={"cap": "cap_w"}, fields={"pools": _LIST}, short=shorthands.under("cap_w")),
            "power domain", single="fleet",
        ),
    },
)  # fmt: skip

_REPLICA: Final = Place(RunningReplica, keys={"kv": "kv_usage", "node": "nodes"}, fields={"nodes": _LIST})
_RUNNING: Final = Place(
    RunningVariant, fields={"details": Many(_REPLICA, "replica")}, short=shorthands.under("replicas")
)

_FLEET: Final = Place(
    Fleet,
    fields={"running": Many(_RUNNING, "running variant")},
    short=shorthands.current,
    whole=True,
    other=_RUNNING,
)

_ACCELERATOR: Final = Place(
    Accelerator,
    keys={
        "memory": "memory_bytes", "bandwidth": "memory_bandwidth", "tdp": "tdp_w", "idle": "idle_w", "price": "usd_per_h",
    },
    fields={"aliases": _LIST},
)  # fmt: skip

_ATTENTION: Final = Place(
    None,
    fields=dict.fromkeys([*GroupedQueryAttention.model_fields, *LatentAttention.model_fields]),
    short=shorthands.attention,
    whole=True,
)

_LLM: Final = Place(Llm, fields={"attention": _ATTENTION, "moe": Place(Moe), "aliases": _LIST})

SCENARIO: Final = Place(
    Scenario,
    keys={"current": "fleet"},
    fields={
        "services": Many(_SERVICE, "service"),
        "pools": Many(_POOL, "pool"),
        "fleet": _FLEET,
        "limits": _LIMITS,
        "objective": Place(Objective, keys={"order": "levels", "horizon": "horizon_h"}, fields={"levels": _LIST},
                           short=shorthands.under("levels")),
        "performance": Place(
            PerformanceChoice, fields={"sources": _LIST, "profiles": _LIST}, short=shorthands.under("sources")
        ),
        "accelerators": Many(_ACCELERATOR, "accelerator"),
        "llms": Many(_LLM, "LLM"),
        "profiles": _LIST,
        "defaults": Place(None, fields={"service": _SERVICE, "variant": _VARIANT, "pool": _POOL}),
    },
)  # fmt: skip
