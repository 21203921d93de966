"""Calls of kubectl that change one count, and those that wait for it, as lists of arguments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.manifests.route import Change
from planner.manifests.targets import API_VERSIONS, SCALERS, Target

__all__ = ["PAUSED", "Kubectl", "Order", "annotations_of", "pinned_bounds"]

PAUSED: Final = "autoscaling.keda.sh/paused-replicas"
"""Annotation that holds a ScaledObject at a count. It takes 0, leaves the bounds as they are and is undone by
removing it; minimum = maximum = n would overwrite both bounds, and KEDA refuses a maximum of 0."""

_MANAGED: Final = "llm-d.ai/managed"
_MODEL: Final = "llm-d.ai/model-id"
_COST: Final = "llm-d.ai/variant-cost"
_TAKES_UP_S: Final = 120


@dataclass(frozen=True, slots=True)
class Order:
    """One call of kubectl.

    Attributes:
        what: it does, one sentence.
        line: for a shell, quoted.
    """

    what: str
    line: str


def annotations_of(target: Target) -> dict[str, str]:
    """What a controller reads of a variant: the LLM and the cost of one replica.

    Only a VariantAutoscaling is marked as managed: a plan does not hand other objects to a controller.
    """
    managed = {_MANAGED: "true"} if target.object.scaler == "variantautoscaling" else {}
    return managed | {_MODEL: target.llm, _COST: target.cost}


def pinned_bounds(change: Change) -> int:
    """Minimum and maximum of the HPA after a change; at least 1.

    The API server refuses a maximum of 0. An HPA whose minimum is at least 1 leaves a target with 0 replicas
    alone, so that is how one rests; it is pinned at the old count until then.
    """
    return change.new or max(change.old, 1)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Makes the calls.

    Args:
        contexts: whether each call names the cluster of its object as kubectl's context.
    """

    contexts: bool = False

    def orders(self, change: Change) -> Iterator[Order]:
        """Calls that change the count, in order. A VariantAutoscaling has none: it has no count."""
        target = change.target
        name = f"{SCALERS[target.object.scaler][1]} {target.scaler_name}" if self._scaled(target) else ""
        match target.object.scaler:
            case "scale":
                yield self._scale(change, f"Set the replicas, if there are {change.old} now.")
            case "hpa":
                bounds = pinned_bounds(change)
                yield Order(f"Hold {name} at {bounds}.", self._patch_hpa(target, bounds))
                if change.new == 0:
                    yield self._scale(change, "Set the replicas to 0; the HPA rests until there are some.")
                elif change.old == 0:
                    yield self._scale(change, "Set the replicas: the HPA rests while there are none.")
            case "keda":
                arguments = ["annotate", self._scaler(target), "--overwrite", f"{PAUSED}={change.new}"]
                yield Order(f"Hold {name} at {change.new}.", self._line(target, *arguments))
            case "variantautoscaling":
                return

    def metadata(self, target: Target) -> Order:
        """The call that writes the annotations of a VariantAutoscaling."""
        pairs = [f"{key}={value}" for key, value in annotations_of(target).items()]
        line = self._line(target, "annotate", self._scaler(target), "--overwrite", *pairs)
        return Order(f"Say what VariantAutoscaling {target.scaler_name} serves and costs.", line)

    def without_metadata(self, target: Target) -> str:
        """The call that removes these annotations."""
        return self._line(
            target, "annotate", self._scaler(target), *(f"{key}-" for key in annotations_of(target))
        )

    def released(self, target: Target) -> str:
        """The call that gives a count back to KEDA."""
        return self._line(target, "annotate", self._scaler(target), f"{PAUSED}-")

    def bounds(self, target: Target) -> str:
        """The call that prints the bounds of an HPA."""
        shown = 'jsonpath={.metadata.name}: {.spec.minReplicas} to {.spec.maxReplicas}{"\\n"}'
        return self._line(target, "get", f"hpa/{target.scaler_name}", "-o", shown)

    def asked(self, change: Change) -> Iterator[Order]:
        """The call that returns when a scaler has passed a count on; none where the count is written directly."""
        target, scaler = change.target, change.target.object.scaler
        if scaler == "keda" or (scaler == "hpa" and change.old and change.new):
            expected = f"--for=jsonpath={{.spec.replicas}}={change.new}"
            arguments = ["wait", self._workload(target), expected, f"--timeout={_TAKES_UP_S}s"]
            yield Order(f"Wait until its scaler asks for {change.new}.", self._line(target, *arguments))

    def ready(self, change: Change, timeout_s: int) -> Order:
        """The call that returns when every replica is ready, or fails after ``timeout_s`` seconds."""
        target, resource, timeout = change.target, self._workload(change.target), f"--timeout={timeout_s}s"
        arguments = ["rollout", "status", resource, timeout]
        if target.object.kind == "LeaderWorkerSet":
            arguments = ["wait", resource, f"--for=jsonpath={{.status.readyReplicas}}={change.new}", timeout]
        return Order("Wait until every replica is ready.", self._line(target, *arguments))

    def _scale(self, change: Change, what: str) -> Order:
        counts = [f"--current-replicas={change.old}", f"--replicas={change.new}"]
        target = change.target
        return Order(what, self._line(target, "scale", self._workload(target), *counts))

    def _patch_hpa(self, target: Target, bounds: int) -> str:
        # One patch for both: no state between in which the minimum exceeds the maximum.
        patch = json.dumps({"spec": {"minReplicas": bounds, "maxReplicas": bounds}})
        return self._line(target, "patch", f"hpa/{target.scaler_name}", "--type=merge", "-p", patch)

    def _line(self, target: Target, *arguments: str) -> str:
        context = ["--context", target.cluster] if self.contexts and target.cluster else []
        return shlex.join(["kubectl", *context, "-n", target.namespace, *arguments])

    @staticmethod
    def _scaled(target: Target) -> bool:
        return target.object.scaler in SCALERS

    @staticmethod
    def _workload(target: Target) -> str:
        """``deployment/name``; with version and group where these are not the usual ones of a built-in kind."""
        kind, (group, _, version) = target.object.kind.lower(), target.api_version.rpartition("/")
        if target.api_version != API_VERSIONS[target.object.kind]:
            kind = ".".join(part for part in (kind, version, group) if part)
        elif target.object.kind == "LeaderWorkerSet":
            kind = f"{kind}.{group}"
        return f"{kind}/{target.object.name}"

    @staticmethod
    def _scaler(target: Target) -> str:
        api_version, kind = SCALERS[target.object.scaler]
        return f"{kind.lower()}.{api_version.partition('/')[0]}/{target.scaler_name}"
