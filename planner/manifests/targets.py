"""The Kubernetes objects that a problem names: one per variant and cluster, whose count is that of its candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from models.ids import LlmId, Name, PoolId
from models.problem import Candidate, Problem
from models.variant import KubernetesObject
from planner.errors import ConfigurationError, Finding
from planner.manifests.resizes import elastic_variants

__all__ = ["API_VERSIONS", "SCALERS", "Target", "TargetKey", "targets_of"]

TargetKey = tuple[str, str, str, str]
"""Cluster (empty: nobody said), namespace, kind, name."""

API_VERSIONS: Final[Mapping[str, str]] = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}
"""The usual API version of each kind."""

SCALERS: Final[Mapping[str, tuple[str, str]]] = {
    "hpa": ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "keda": ("keda.sh/v1alpha1", "ScaledObject"),
    "variantautoscaling": ("llmd.ai/v1alpha1", "VariantAutoscaling"),
}
"""API version and kind of the object that owns a count, by scaler."""

# RFC 1123, as the API server checks names (subdomain) and namespaces (label).
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\Z")
_NAMESPACE: Final = re.compile(rf"(?=.{{1,63}}\Z){_LABEL}\Z")
_API_VERSION: Final = re.compile(rf"({_LABEL}(\.{_LABEL})*/)?v[0-9]+((alpha|beta)[0-9]+)?\Z")


@dataclass(frozen=True, slots=True)
class Target:
    """One object whose replica count is the sum over the candidates of one variant in one cluster.

    Attributes:
        object: as the scenario names it.
        cluster: of its pools; None: nobody said.
        llm: what its replicas serve.
        candidates: places of the variant; more than one cannot be told apart by a count.
    """

    object: KubernetesObject
    cluster: Name | None
    llm: LlmId
    candidates: tuple[Candidate, ...]

    @property
    def key(self) -> TargetKey:
        """What makes it one object."""
        return self.cluster or "", self.namespace, self.object.kind, self.object.name

    @property
    def namespace(self) -> str:
        """Where object and scaler are."""
        return self.object.namespace or "default"

    @property
    def api_version(self) -> str:
        """API version of the object."""
        return self.object.api_version or API_VERSIONS[self.object.kind]

    @property
    def scaler_name(self) -> str:
        """Name of the object that owns the count."""
        return self.object.scaler_name or self.object.name

    @property
    def label(self) -> str:
        """Service and variant."""
        return f"{self.candidates[0].service}/{self.candidates[0].variant}"

    @property
    def pools(self) -> tuple[PoolId, ...]:
        """Pools of its candidates, each once, sorted."""
        return tuple(sorted({candidate.pool for candidate in self.candidates}))

    @property
    def startup_s(self) -> float:
        """Time from request to ready of the slowest place, s."""
        return max(candidate.startup_s for candidate in self.candidates)

    @property
    def cost(self) -> str:
        """Cost of one replica in its dearest place, as ``variant-cost`` wants it: digits, no exponent."""
        return format(Decimal(repr(max(candidate.cost for candidate in self.candidates))), "f")

    @property
    def on_order(self) -> int:
        """Replicas that the object asks for now."""
        return sum(candidate.on_order for candidate in self.candidates)


def targets_of(problem: Problem) -> tuple[Target, ...]:
    """Every object that candidates name, sorted; those of elastic deployments that may change their size are left alone.

    Raises:
        ConfigurationError: a name is none for Kubernetes, two variants share an object, two objects share a
            scaler, or an object counts pods where a replica is several.
    """
    grouped: dict[TargetKey, list[Candidate]] = {}
    elastic = elastic_variants(problem)
    for candidate in problem.candidates:
        if candidate.object is not None and (candidate.service, candidate.variant) not in elastic:
            cluster = problem.pool[candidate.pool].cluster
            target = Target(candidate.object, cluster, problem.demand[candidate.service].llm, (candidate,))
            grouped.setdefault(target.key, []).append(candidate)
    findings = [finding for group in grouped.values() for finding in _findings(group)]
    targets = tuple(_target(problem, group) for _, group in sorted(grouped.items()))
    findings += _shared_scalers(targets)
    if findings:
        raise ConfigurationError.from_findings(dict.fromkeys(findings))
    return targets


def _target(problem: Problem, candidates: Iterable[Candidate]) -> Target:
    group = tuple(candidates)
    first = group[0]
    assert first.object is not None  # noqa: S101 - only candidates with an object are grouped
    return Target(first.object, problem.pool[first.pool].cluster, problem.demand[first.service].llm, group)


def _findings(group: Iterable[Candidate]) -> Iterator[Finding]:
    """What is wrong with one object, and with the variants that name it."""
    first, *others = group
    for other in others:
        if (other.service, other.variant) != (first.service, first.variant):
            found = f"the object of {first.service}/{first.variant} once more"
            yield _finding(other, "", found, "an object of its own for each variant")
    for candidate in (first, *others):
        named = candidate.object
        if named is None:
            continue
        for key, value in (("name", named.name), ("scaler_name", named.scaler_name)):
            if value is not None and _NAME.match(value) is None:
                yield _finding(
                    candidate, key, repr(value), "lower case letters, digits, '-' and '.' (RFC 1123)"
                )
        if named.namespace is not None and _NAMESPACE.match(named.namespace) is None:
            allowed = "at most 63 lower case letters, digits and '-' (RFC 1123)"
            yield _finding(candidate, "namespace", repr(named.namespace), allowed)
        if named.api_version is not None and _API_VERSION.match(named.api_version) is None:
            yield _finding(candidate, "api_version", repr(named.api_version), "group/version, e.g. apps/v1")
        if named.kind != "LeaderWorkerSet" and candidate.pods_per_replica > 1:
            found = f"{named.kind}, which counts pods, and a replica is {candidate.pods_per_replica} pods"
            yield _finding(candidate, "kind", found, "LeaderWorkerSet, which counts groups of pods")


def _shared_scalers(targets: Iterable[Target]) -> Iterator[Finding]:
    owners: dict[tuple[str, ...], Target] = {}
    for target in targets:
        if target.object.scaler == "scale":
            continue
        scaler = (target.cluster or "", target.namespace, target.object.scaler, target.scaler_name)
        owner = owners.setdefault(scaler, target)
        if owner is not target:
            found = f"{target.scaler_name!r}, which scales {owner.object.kind} {owner.object.name!r}"
            yield _finding(target.candidates[0], "scaler_name", found, "a scaler of its own for each object")


def _finding(candidate: Candidate, key: str, found: str, allowed: str) -> Finding:
    path = f"services.{candidate.service}.variants.{candidate.variant}.object"
    return Finding("", None, f"{path}.{key}" if key else path, found, allowed)
