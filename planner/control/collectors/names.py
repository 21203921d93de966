"""Which series say what: the one table of metric names, from which queries are written and pages are read.

Sources: vLLM v0.6 to v0.19 (``vllm/engine/metrics.py``, ``vllm/v1/metrics``), SGLang 0.5, llm-d-inference-sim v0.10,
Gateway API inference extension v1 and llm-d-router v0.9 (endpoint picker), dcgm-exporter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = [
    "COMPLETED",
    "DISPATCH",
    "ENGINE_MEASURES",
    "ENGINE_PREFIXES",
    "POWER",
    "PRESENCE",
    "ROUTER_MEASURES",
    "ROUTER_PREFIXES",
    "STARTED",
    "WORKER_LABELS",
    "How",
    "Measure",
    "Way",
    "engine_of",
    "plain",
    "spellings",
]

ENGINE_PREFIXES: Final = ("vllm", "sglang")
ROUTER_PREFIXES: Final = ("llm_d_epp", "inference_extension", "inference_objective", "inference_model")
WORKER_LABELS: Final = (
    "leaderworkerset_sigs_k8s_io_worker_index",
    "label_leaderworkerset_sigs_k8s_io_worker_index",
)
"""Labels that carry the index of a pod in its group, where the scrape keeps pod labels."""

_MINUTE_S: Final = 60.0
_MEANS_S: Final = 300.0
_NOW_S: Final = 0.0


class How(StrEnum):
    """How a value is worked out of series."""

    NOW = "now"
    """The gauge as it stands."""
    PEAK = "peak"
    """Maximum of the gauge in the window."""
    MEAN = "mean"
    """Growth of the first counter in the window over growth of the second."""
    RATE = "rate"
    """Growth of the counter in the window, per second."""
    GROWTH = "growth"
    """Growth of the counter in the window."""
    SIZE = "size"
    """Product of two labels of an info series."""


@dataclass(frozen=True, slots=True)
class Way:
    """Series that a value is worked out of; two for a mean.

    Attributes:
        series: names as the engine writes them.
        labels: labels whose product is the value (:attr:`How.SIZE`), else label values that a sample must have.
        how: where it differs from its measure.
    """

    series: tuple[str, ...]
    labels: tuple[tuple[str, str], ...] = ()
    how: How | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """One value of an engine or a router.

    Attributes:
        field: of the observation.
        how: see :class:`How`.
        window_s: of maxima, means and rates, s; 0: now.
        ways: the first that is there counts.
        bounds: smallest and largest value that is believed.
        needed: decisions rest on it; where it is missing for all, something is wrong.
    """

    field: str
    how: How
    window_s: float
    ways: tuple[Way, ...]
    bounds: tuple[float, float] = (0.0, 1e9)
    needed: bool = True

    def how_of(self, way: Way) -> How:
        """How the value is worked out of this way."""
        return way.how or self.how


def _ways(*series: str, how: How | None = None) -> tuple[Way, ...]:
    return tuple(Way((name,), how=how) for name in series)


def _means(*histograms: str) -> tuple[Way, ...]:
    return tuple(Way((f"{name}_sum", f"{name}_count")) for name in histograms)


_SHARE: Final = (0.0, 1.05)
"""A little above one is rounding of the engine; more is another unit, and not believed."""
_RUNNING: Final = _ways("vllm:num_requests_running", "sglang:num_running_reqs")
_WAITING: Final = _ways("vllm:num_requests_waiting", "sglang:num_queue_reqs")
_KV: Final = _ways("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
_COMPLETED: Final = _ways(
    "vllm:request_success_total", "vllm:request_success", "sglang:num_requests_total", "sglang:num_requests"
)
_HITS: Final = (
    Way(("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")),
    Way(("vllm:prefix_cache_hits", "vllm:prefix_cache_queries")),
    Way(("vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total")),
    Way(("vllm:gpu_prefix_cache_hits", "vllm:gpu_prefix_cache_queries")),
    Way(("sglang:cached_tokens_total", "sglang:prompt_tokens_total")),
    *_ways("vllm:gpu_prefix_cache_hit_rate", "sglang:cache_hit_rate", how=How.NOW),
)
_SIZE: Final = (
    Way(("vllm:cache_config_info",), (("num_gpu_blocks", ""), ("block_size", "")), How.SIZE),
    *_ways("sglang:max_total_num_tokens"),
)

PRESENCE: Final = (*_RUNNING, *_KV, *_WAITING)
"""An engine is there where one of these is."""

ENGINE_MEASURES: Final = (
    Measure("running", How.NOW, _NOW_S, _RUNNING),
    Measure("waiting_now", How.NOW, _NOW_S, _WAITING),
    Measure("waiting", How.PEAK, _MINUTE_S, _WAITING),
    Measure("kv_now", How.NOW, _NOW_S, _KV, _SHARE),
    Measure("kv_usage", How.PEAK, _MINUTE_S, _KV, _SHARE),
    Measure("kv_tokens", How.NOW, _NOW_S, _SIZE, (1.0, 1e12)),
    Measure(
        "input_tokens", How.MEAN, _MEANS_S,
        (*_means("vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram"),
         Way(("sglang:prompt_tokens_total", "sglang:num_requests_total"))),
    ),
    Measure(
        "output_tokens", How.MEAN, _MEANS_S,
        (*_means("vllm:request_generation_tokens", "sglang:generation_tokens_histogram"),
         Way(("sglang:generation_tokens_total", "sglang:num_requests_total"))),
    ),
    Measure("hit_share", How.MEAN, _MEANS_S, _HITS, _SHARE, needed=False),
    Measure(
        "ttft_s", How.MEAN, _MINUTE_S,
        _means("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"), (0.0, 1e6),
    ),
    Measure(
        "itl_s", How.MEAN, _MINUTE_S,
        _means("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds",
               "sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"), (0.0, 1e6),
    ),
    Measure(
        "token_rate", How.RATE, _MINUTE_S,
        _ways("vllm:generation_tokens_total", "vllm:generation_tokens", "vllm:request_generation_tokens_sum",
              "sglang:generation_tokens_total", "sglang:generation_tokens",
              "sglang:generation_tokens_histogram_sum"),
    ),
    Measure(
        "request_rps", How.RATE, _MINUTE_S,
        _ways("vllm:request_generation_tokens_count", "vllm:request_success_total",
              "sglang:generation_tokens_histogram_count", "sglang:num_requests_total"), (0.0, 1e7),
    ),
)  # fmt: skip
"""Values of one engine; ``waiting_now`` serves the traffic of its service too."""

COMPLETED: Final = Measure("completed", How.GROWTH, _MEANS_S, _COMPLETED, (0.0, 1e12), needed=False)

STARTED: Final = Measure(
    "started_s", How.NOW, _NOW_S, _ways("process_start_time_seconds"), (1.0, 1e11), needed=False
)
POWER: Final = Measure("power_w", How.NOW, _NOW_S, _ways("DCGM_FI_DEV_POWER_USAGE"), (0.0, 1e6), needed=False)

_ATTEMPTS: Final = ("llm_d_epp_scheduler_attempts_total", "inference_extension_scheduler_attempts_total")
_REQUESTS: Final = (
    "llm_d_epp_request_total",
    "inference_objective_request_total",
    "inference_model_request_total",
)
_SENT: Final = tuple(Way((name,), (("status", "success"),)) for name in _ATTEMPTS)

ROUTER_MEASURES: Final = (
    Measure(
        "queued", How.NOW, _NOW_S,
        _ways("llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size"),
    ),
    Measure(
        "queued_bytes", How.NOW, _NOW_S,
        _ways("llm_d_epp_flow_control_queue_bytes", "inference_extension_flow_control_queue_bytes"),
        (0.0, 1e15), needed=False,
    ),
    Measure("arrival_rps", How.RATE, _MINUTE_S, _SENT, (0.0, 1e7)),
    Measure("requested_rps", How.RATE, _MINUTE_S, _ways(*_REQUESTS), (0.0, 1e7), needed=False),
    Measure("arrived", How.GROWTH, _MEANS_S, _ways(*_REQUESTS), (0.0, 1e12), needed=False),
    Measure("attempted", How.GROWTH, _MEANS_S, _SENT, (0.0, 1e12), needed=False),
    Measure(
        "in_flight", How.NOW, _NOW_S,
        _ways("llm_d_epp_request_running", "inference_objective_running_requests", "inference_model_running_requests"),
        needed=False,
    ),
)  # fmt: skip
"""Values of one model at one endpoint picker, new names first; requests and attempts each stand in for the other."""

DISPATCH: Final = Measure("dispatch_rps", How.RATE, _MINUTE_S, _SENT, (0.0, 1e7), needed=False)
"""Requests that an endpoint picker sends to one engine."""


def plain(name: str) -> str:
    """A name as OpenMetrics leaves it: ``vllm:num_requests_running`` -> ``vllm_num_requests_running``."""
    return name.replace(":", "_", 1)


def spellings(name: str) -> tuple[str, ...]:
    """A name, and how it is called where the scrape was negotiated as OpenMetrics."""
    return (name,) if ":" not in name else (name, plain(name))


def engine_of(name: str) -> str:
    """``vllm`` or ``sglang`` by the name of a series; empty: another one."""
    return next((prefix for prefix in ENGINE_PREFIXES if name.startswith((f"{prefix}:", f"{prefix}_"))), "")
