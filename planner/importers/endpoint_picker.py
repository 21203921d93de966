"""An ``EndpointPickerConfig`` of llm-d's router as a router of the digital twin.

Read are the plugins and their parameters, the scheduling profile with its weights, the saturation detector (the old inline
thresholds, or a plugin) and flow control. What cannot be replayed and would change where requests go is a finding; what
has no part in that (parsers, data sources, filters by role) is left out and noted.

Differences to the original, by design: the prefix scorer knows what a replica really holds (the original estimates it, or
asks); requests are held while every replica is saturated (the original looks at their mean); the queue's bytes are
taken as 4 per token of the prompt.

Source: llm-d/llm-d-router, apix/config/v1alpha1 and the READMEs of its detectors; gateway-api-inference-extension for the
older form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from models.simulation import Admission, RouterSpec, Routing, ScorerWeights
from planner.errors import ConfigurationError, Finding, nearest
from planner.performance.profile import read_text

__all__ = ["PickerReading", "read_endpoint_picker"]

_KIND: Final = "EndpointPickerConfig"
_VERSIONS: Final = (
    "llm-d.ai/v1",
    "llm-d.ai/v1alpha1",
    "inference.networking.x-k8s.io/v1alpha1",
    "config.apix.gateway-api-inference-extension.sigs.k8s.io/v1alpha1",
)
_KEYS: Final = (
    "apiVersion", "kind", "featureGates", "plugins", "schedulingProfiles", "saturationDetector", "flowControl", "dataLayer",
    "requestHandler", "parser", "metadata",
)  # fmt: skip
_SCORERS: Final = {
    "queue-scorer": "queue",
    "queue-depth-scorer": "queue",
    "kv-cache-utilization-scorer": "kv_cache",
    "kv-cache-scorer": "kv_cache",
    "prefix-cache-scorer": "prefix",
    "precise-prefix-cache-scorer": "prefix",
}
_PICKERS: Final = {"max-score-picker": Routing.SCORERS, "random-picker": Routing.RANDOM}
_DETECTORS: Final = ("utilization-detector", "concurrency-detector")
_NO_PART: Final = (
    "single-profile-handler", "pd-profile-handler", "disagg-profile-handler", "decode-filter", "prefill-filter", "encode-filter",
    "prefill-header-handler", "disagg-headers-handler", "by-label", "by-label-selector", "label-selector-filter", "openai-parser",
    "vllmgrpc-parser", "vllm-grpc-parser", "passthrough-parser", "metrics-data-source", "core-metrics-extractor",
    "models-data-source", "models-data-extractor", "models-responder", "inflight-load-producer", "approx-prefix-cache-producer",
    "approximate-prefix-cache-producer", "precise-prefix-cache-producer", "token-producer", "tokenizer",
    "prefix-cache-match-data-producer", "always-disagg-pd-decider", "prefix-based-pd-decider", "global-strict-fairness-policy",
    "fcfs-ordering-policy", "round-robin-fairness-policy", "static-usage-limit-policy",
)  # fmt: skip
_FLOW_KEYS: Final = (
    "maxBytes", "maxRequests", "defaultRequestTTL", "noEndpointRequestTTL", "defaultPriorityBand",
    "defaultNegativePriorityBand", "priorityBands", "usageLimitPolicyPluginRef", "saturationDetector", "enableEviction",
)  # fmt: skip
_BAND_KEYS: Final = ("priority", "priorityName", "maxBytes", "maxRequests", "fairnessPolicyRef", "orderingPolicyRef",
                     "defaultRequestTTL", "queue", "fairnessPolicy", "orderingPolicy")  # fmt: skip
_REFRESH_S: Final = 0.05
_TTL_S: Final = 60.0
_BAND_REQUESTS: Final = 5000
"""What a priority band holds that says nothing of it."""
_BYTES_PER_TOKEN: Final = 4
_MOST: Final = 10**9
"""Requests, tokens, seconds and weights at most, as the twin has them."""
_GO: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_GO_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)(|k|M|G|T|Ki|Mi|Gi|Ti)")
_SCALES: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
                  "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PickerReading:
    """What was read.

    Attributes:
        router: of the twin.
        notes: what has no part in a replay and was left out.
    """

    router: RouterSpec
    notes: tuple[str, ...]


def read_endpoint_picker(path: Path) -> PickerReading:
    """Read the configuration, bare or inside a ConfigMap.

    Raises:
        ConfigurationError: it cannot be read, or something in it is wrong or cannot be replayed; every finding at once.
    """
    file = str(path)
    reader = _Reader(file)
    try:
        documents = [each for each in yaml.safe_load_all(read_text(path)) if each is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as cause:
        raise ConfigurationError.from_findings([Finding(file, None, "", f"no YAML ({cause})")]) from cause
    document = next(filter(None, map(_config_in, documents)), None)
    if document is None:
        raise ConfigurationError.from_findings([Finding(file, None, "kind", "no such document", _KIND)])
    router = reader.router(document)
    if reader.findings:
        raise ConfigurationError.from_findings(reader.findings)
    return PickerReading(router, tuple(reader.notes))


def _config_in(document: object) -> Mapping[str, Any] | None:
    """The configuration, if it is one or holds one."""
    if not isinstance(document, Mapping):
        return None
    if document.get("kind") == _KIND:
        return document
    data = document.get("data")
    for text in data.values() if document.get("kind") == "ConfigMap" and isinstance(data, Mapping) else ():
        try:
            inner = yaml.safe_load(text) if isinstance(text, str) else None
        except yaml.YAMLError:
            continue
        if isinstance(inner, Mapping) and inner.get("kind") == _KIND:
            return inner
    return None


@dataclass(slots=True)
class _Reader:
    """Collects findings and notes while it reads."""

    file: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def wrong(self, path: str, found: str, allowed: str, suggestion: str | None = None) -> None:
        """Take note of something wrong."""
        self.findings.append(Finding(self.file, None, path, found[:120], allowed, suggestion))

    def router(self, document: Mapping[str, Any]) -> RouterSpec:
        """The router that a document describes."""
        self.keys(document, _KEYS, "")
        version = document.get("apiVersion")
        if version not in _VERSIONS:
            self.wrong("apiVersion", "nothing" if version is None else repr(version), ", ".join(_VERSIONS))
        plugins = self.plugins(document.get("plugins"))
        weights, routing = self.profile(document.get("schedulingProfiles"), plugins)
        flow = self.mapping(document.get("flowControl"), "flowControl")
        detector = self.detector(document, flow, plugins)
        is_on = self.gate(document.get("featureGates"))
        if not is_on and flow:
            self.notes.append("flowControl is left out: its feature gate is not set")
        admission = self.flow(flow) if is_on else {"admission": Admission.SHED}
        return RouterSpec.model_validate(
            {"routing": routing, "weights": weights, "refresh_s": _REFRESH_S} | detector | admission
        )

    def keys(self, mapping: Mapping[str, Any], known: tuple[str, ...], path: str) -> None:
        """Take note of keys that nobody knows."""
        for key in mapping:
            if key not in known:
                self.wrong(f"{path}{key}", "an unknown key", ", ".join(known), nearest(str(key), known))

    def mapping(self, value: object, path: str) -> Mapping[str, Any]:
        """A mapping; empty where there is none."""
        if value is None or isinstance(value, Mapping):
            return value or {}
        self.wrong(path, repr(value), "a mapping")
        return {}

    def items(self, value: object, path: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Mappings of a list, each with its path."""
        if value is not None and not isinstance(value, list):
            self.wrong(path, repr(value), "a list")
            return []
        listed = value or []
        for i, each in enumerate(listed):
            if not isinstance(each, Mapping):
                self.wrong(f"{path}[{i}]", "nothing" if each is None else repr(each), "a mapping")
        return [(f"{path}[{i}]", each) for i, each in enumerate(listed) if isinstance(each, Mapping)]

    def plugins(self, value: object) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """(type, parameters) by name; types that nobody knows, or that the twin cannot replay, are findings."""
        found: dict[str, tuple[str, Mapping[str, Any]]] = {}
        known = (*_SCORERS, *_PICKERS, *_DETECTORS, *_NO_PART)
        for path, plugin in self.items(value, "plugins"):
            kind = str(plugin.get("type", ""))
            name = str(plugin.get("name") or kind)
            if not kind:
                self.wrong(f"{path}.type", "nothing", "the type of a plugin")
            elif kind not in known:
                allowed = ", ".join((*_SCORERS, *_PICKERS, *_DETECTORS))
                self.wrong(
                    f"{path}.type",
                    f"the plugin {kind!r}, which cannot be replayed",
                    allowed,
                    nearest(kind, known),
                )
            elif kind in _NO_PART:
                self.notes.append(f"plugin {kind} has no part in a replay")
            if not name:
                continue
            if name in found:
                self.wrong(f"{path}.name", f"the name {name!r} twice", "each name once")
            found[name] = kind, self.mapping(plugin.get("parameters"), f"{path}.parameters")
        if value is None:
            self.wrong("plugins", "nothing", "a list of plugins")
        return found

    def profile(
        self, value: object, plugins: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> tuple[ScorerWeights, Routing]:
        """Weights and picker of the profile that decides: the one that is not for prefill."""
        read = {}
        for path, profile in self.items(value, "schedulingProfiles"):
            name = str(profile.get("name") or "")
            if not name:
                self.wrong(f"{path}.name", "nothing", "the name of the profile")
            read[name] = self.slots(profile.get("plugins"), plugins, f"{path}.plugins")
        if not read:
            self.wrong("schedulingProfiles", "no profile", "at least one")
            return ScorerWeights(), Routing.SCORERS
        chosen = next((name for name in read if "prefill" not in name.casefold()), next(iter(read)))
        others = [name for name in read if name != chosen and read[name] != read[chosen]]
        if others:
            self.notes.append(f"profile {chosen!r} decides for all roles; left out: {', '.join(others)}")
        weights, routing = read[chosen]
        return ScorerWeights(
            **{name: weights.get(name, 0.0) for name in ("queue", "kv_cache", "prefix")}
        ), routing

    def slots(
        self, value: object, plugins: Mapping[str, tuple[str, Mapping[str, Any]]], path: str
    ) -> tuple[dict[str, float], Routing]:
        """Weights by scorer, and the picker, of one profile."""
        weights: dict[str, float] = {}
        routing = Routing.SCORERS
        for at, slot in self.items(value, path):
            self.keys(slot, ("pluginRef", "weight"), f"{at}.")
            reference = str(slot.get("pluginRef", ""))
            if reference not in plugins:
                self.wrong(
                    f"{at}.pluginRef", repr(reference), ", ".join(plugins), nearest(reference, plugins)
                )
                continue
            kind = plugins[reference][0]
            if kind in _PICKERS:
                routing = _PICKERS[kind]
            elif kind in _SCORERS:
                weight = self.number(slot.get("weight"), f"{at}.weight", default=1.0)
                weights[_SCORERS[kind]] = weights.get(_SCORERS[kind], 0.0) + weight
        return weights, routing

    def number(self, value: object, path: str, *, default: float) -> float:
        """A number that is not negative."""
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
            self.wrong(path, repr(value), f"a number that is not negative, at most {_MOST:,}")
            return default
        return float(value)

    def gate(self, value: object) -> bool:
        """Whether the gate ``flowControl`` is set."""
        if value is not None and not isinstance(value, list):
            self.wrong("featureGates", repr(value), "a list")
            return False
        gates = [str(each).partition("=") for each in value or ()]
        return any(name == "flowControl" and setting in {"", "true"} for name, _, setting in gates)

    def detector(
        self,
        document: Mapping[str, Any],
        flow: Mapping[str, Any],
        plugins: Mapping[str, tuple[str, Mapping[str, Any]]],
    ) -> dict[str, Any]:
        """Fields of the router that say when a replica is saturated."""
        path = "flowControl.saturationDetector" if flow.get("saturationDetector") else "saturationDetector"
        stated = self.mapping(flow.get("saturationDetector") or document.get("saturationDetector"), path)
        reference = stated.get("pluginRef")
        if reference is None:
            inline = {key: value for key, value in stated.items() if key != "pluginRef"}
            kind, parameters = plugins.get("utilization-detector", ("utilization-detector", inline))
            parameters = {**parameters, **inline}
        elif str(reference) in plugins:
            kind, parameters = plugins[str(reference)]
            path = f"plugins.{reference}"
        elif str(reference) == "utilization-detector":
            kind, parameters = "utilization-detector", {}
        else:
            self.wrong(
                f"{path}.pluginRef", repr(reference), ", ".join(plugins), nearest(str(reference), plugins)
            )
            return {}
        if kind == "concurrency-detector":
            return self.concurrency(parameters, path)
        if kind != "utilization-detector":
            self.wrong(f"{path}.pluginRef", f"the plugin {kind!r}", ", ".join(_DETECTORS))
            return {}
        return self.utilization(parameters, path)

    def utilization(self, parameters: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Thresholds of the queue and the KV cache."""
        known = ("queueDepthThreshold", "kvCacheUtilThreshold", "metricsStalenessThreshold", "headroom")
        self.keys(parameters, known, f"{path}.")
        queue = self.number(parameters.get("queueDepthThreshold"), f"{path}.queueDepthThreshold", default=5.0)
        usage = self.number(
            parameters.get("kvCacheUtilThreshold"), f"{path}.kvCacheUtilThreshold", default=0.8
        )
        more = 1.0 + self.number(parameters.get("headroom"), f"{path}.headroom", default=0.0)
        if queue < 1 or queue != int(queue):
            self.wrong(f"{path}.queueDepthThreshold", repr(queue), "a whole number from 1")
        if not 0 < usage <= 1:
            self.wrong(f"{path}.kvCacheUtilThreshold", repr(usage), "above 0, at most 1")
        if "metricsStalenessThreshold" in parameters:
            self.duration(parameters["metricsStalenessThreshold"], f"{path}.metricsStalenessThreshold")
        return {
            "saturated_queue": max(1, min(_MOST, int(queue * more))),
            "saturated_kv": min(1.0, usage * more),
        }

    def concurrency(self, parameters: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Requests in flight at which a replica is saturated."""
        self.keys(
            parameters, ("concurrencyMode", "maxConcurrency", "maxTokenConcurrency", "headroom"), f"{path}."
        )
        mode = parameters.get("concurrencyMode", "requests")
        if mode != "requests":
            self.wrong(f"{path}.concurrencyMode", repr(mode), "requests: tokens in flight cannot be replayed")
        most = self.number(parameters.get("maxConcurrency"), f"{path}.maxConcurrency", default=100.0)
        more = 1.0 + self.number(parameters.get("headroom"), f"{path}.headroom", default=0.0)
        # This detector never looks at the KV cache.
        return {"max_in_flight": max(1, min(_MOST, int(most * more))), "saturated_kv": 1.0}

    def flow(self, flow: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of the router that say who waits, how long, and who is refused."""
        self.keys(flow, _FLOW_KEYS, "flowControl.")
        ttl = flow.get("defaultRequestTTL")
        bands = [("flowControl", flow)]
        bands += [
            (f"flowControl.{name}", self.mapping(flow[name], f"flowControl.{name}"))
            for name in ("defaultPriorityBand", "defaultNegativePriorityBand")
            if flow.get(name) is not None
        ]
        bands += self.items(flow.get("priorityBands"), "flowControl.priorityBands")
        for path, band in bands[1:]:
            self.keys(band, _BAND_KEYS, f"{path}.")
        requests = [self.amount(band.get("maxRequests"), f"{path}.maxRequests") for path, band in bands]
        sizes = [self.amount(band.get("maxBytes"), f"{path}.maxBytes") for path, band in bands]
        held = requests[0] or sum(each or _BAND_REQUESTS for each in requests[1:])
        # One queue stands for all bands: it holds what they hold together, or what all of them may.
        if any((requests + sizes)[1:]) and len(bands) > 1:
            self.notes.append("priority bands share one queue, ordered by priority")
        return {
            "admission": Admission.QUEUE,
            "queue_requests": min(_MOST, held or _BAND_REQUESTS),
            "queue_tokens": min(_MOST, (sizes[0] or sum(sizes[1:])) // _BYTES_PER_TOKEN),
            "queue_timeout_s": _TTL_S if ttl is None else self.duration(ttl, "flowControl.defaultRequestTTL"),
            "hold_without_replica": True,
        }

    def amount(self, value: object, path: str) -> int:
        """A quantity of Kubernetes; 0: none is given."""
        if value is None:
            return 0
        found = _QUANTITY.fullmatch(str(value))
        if found is None:
            self.wrong(path, repr(value), "a quantity such as 100, 1k or 1Gi")
            return 0
        # More than any queue of the twin may hold is no limit.
        return int(min(float(found[1]) * _SCALES[found[2]], _MOST * _BYTES_PER_TOKEN))

    def duration(self, value: object, path: str) -> float:
        """A duration as Go writes it, s."""
        text = str(value)
        if text == "0":
            return 0.0
        parts = _GO_PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.wrong(path, repr(value), "a duration such as 200ms, 30s or 1m30s")
            return 0.0
        seconds = sum(float(number) * _GO[unit] for number, unit in parts)
        if seconds > _MOST:
            self.wrong(path, repr(value), f"a duration of at most {_MOST:,} s")
            return 0.0
        return seconds
