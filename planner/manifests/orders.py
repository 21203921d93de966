"""Calls of kubectl that change one count, and those that wait for it, as lists of arguments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.manifests.route import Change
from planner.manifests.targets import API_VERSIONS, SCALERS, Target

__all__ = [
    "FORMER_BOUNDS",
    "FORMER_PAUSE",
    "NOT_PAUSED",
    "PAUSED",
    "Kubectl",
    "Order",
    "annotations_of",
    "pinned_bounds",
]

PAUSED: Final = "autoscaling.keda.sh/paused-replicas"
"""Annotation that holds a ScaledObject at a count. It takes 0, leaves the bounds as they are and is undone by
removing it; minimum = maximum = n would overwrite both bounds, and KEDA refuses a maximum of 0."""

FORMER_BOUNDS: Final = "fleetplan.dev/former-bounds"
"""Annotation of an HPA: minimum and maximum from before the plan, ``1:8``."""

FORMER_PAUSE: Final = "fleetplan.dev/former-pause"
"""Annotation of a ScaledObject: the count that it was paused at before the plan, or :data:`NOT_PAUSED`."""

NOT_PAUSED: Final = "none"

_MANAGED: Final = "llm-d.ai/managed"
_MODEL: Final = "llm-d.ai/model-id"
_COST: Final = "llm-d.ai/variant-cost"
_TAKES_UP_S: Final = 120
_NAME_OF_GROUPS: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of all pods of a LeaderWorkerSet; its selector finds leaders alone."""


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

    def orders(self, change: Change, *, recorded: bool = False) -> Iterator[Order]:
        """Calls that change the count, in order. A VariantAutoscaling has none: it has no count.

        Args:
            change: of one object.
            recorded: by the functions of the script, which skip a count that is there already and keep a record of
                what a scaler had; otherwise bare calls.
        """
        target = change.target
        name = f"{SCALERS[target.object.scaler][1]} {target.scaler_name}" if self._scaled(target) else ""
        match target.object.scaler:
            case "scale":
                what = f"Set the replicas, if there are {change.old} now."
                yield self._scale(change, what, recorded=recorded)
            case "hpa":
                bounds = pinned_bounds(change)
                held = self.call("hold_hpa", target, bounds, on=f"hpa/{target.scaler_name}")
                yield Order(
                    f"Hold {name} at {bounds}.", held if recorded else self._patch_hpa(target, bounds)
                )
                if change.new == 0:
                    what = "Set the replicas to 0; the HPA rests until there are some."
                    yield self._scale(change, what, recorded=recorded)
                elif change.old == 0:
                    what = "Set the replicas: the HPA rests while there are none."
                    yield self._scale(change, what, recorded=recorded)
            case "keda":
                arguments = ["annotate", self._scaler(target), "--overwrite", f"{PAUSED}={change.new}"]
                held = self.call("hold_keda", target, change.new, on=self._scaler(target))
                yield Order(
                    f"Hold {name} at {change.new}.", held if recorded else self._line(target, *arguments)
                )
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

    def call(self, function: str, target: Target, *arguments: object, on: str | None = None) -> str:
        """A call of a function of the script: its arguments, the object, the options of kubectl.

        Args:
            function: its name.
            target: with the cluster and the namespace.
            arguments: before the object.
            on: the object; default: the one that has the replicas.
        """
        words = [str(argument) for argument in arguments]
        return shlex.join([function, *words, on or self._workload(target), *self._options(target)])

    def freed(self, target: Target) -> Order:
        """The call of the function that gives the count back to its scaler."""
        kind = SCALERS[target.object.scaler][1]
        function, on = ("free_hpa", f"hpa/{target.scaler_name}")
        if target.object.scaler == "keda":
            function, on = ("free_keda", self._scaler(target))
        what = f"Give {kind} {target.scaler_name} back what it had before the plan."
        return Order(what, self.call(function, target, on=on))

    def gone(self, change: Change, seconds: int) -> Order:
        """The call of the function that returns when no pod is left beyond the count, pods that are ending included.

        Args:
            change: to fewer replicas.
            seconds: time limit beside the grace period of the pods, s.
        """
        target, pods, labels = change.target, change.new, ""
        if target.object.kind == "LeaderWorkerSet":
            pods = change.new * target.candidates[0].pods_per_replica
            labels = f"{_NAME_OF_GROUPS}={target.object.name}"
        sentence = f"the pods of {_named(target)} beyond {change.new} replicas are not gone in time, and hold their GPUs"
        line = self.call("gone", target, seconds, sentence, change.new, pods, labels)
        return Order("Wait until the pods that go have left their GPUs.", line)

    def moved(self, change: Change, seconds: int) -> Order:
        """The call of the function that returns when a control plane has brought the replicas, and they are ready."""
        target = change.target
        sentence = (
            f"{_named(target)} has not {change.new} ready replicas: did the control plane emit its gauge? "
            f"Nothing that they replace was taken away"
        )
        line = self.call("within", target, seconds, sentence, "has_ready", change.new)
        return Order("Wait until the control plane has brought the replicas, and they are ready.", line)

    def asked(self, change: Change) -> Iterator[Order]:
        """The call that returns when a scaler has passed a count on; none where the count is written directly."""
        target, scaler = change.target, change.target.object.scaler
        if scaler == "keda" or (scaler == "hpa" and change.old and change.new):
            expected = f"--for=jsonpath={{.spec.replicas}}={change.new}"
            arguments = ["wait", self._workload(target), expected, f"--timeout={_TAKES_UP_S}s"]
            stop = _or_stop(f"the scaler of {_named(target)} does not ask for {change.new} replicas")
            line = f"{self._line(target, *arguments)}{stop}"
            yield Order(f"Wait until its scaler asks for {change.new}.", line)

    def ready(self, change: Change, timeout_s: int) -> Order:
        """The call that returns when every replica is ready, or fails after ``timeout_s`` seconds."""
        target, resource, timeout = change.target, self._workload(change.target), f"--timeout={timeout_s}s"
        arguments = ["rollout", "status", resource, timeout]
        if target.object.kind == "LeaderWorkerSet":
            arguments = ["wait", resource, f"--for=jsonpath={{.status.readyReplicas}}={change.new}", timeout]
        stop = _or_stop(
            f"{_named(target)} has not {change.new} ready replicas in {timeout_s} s, and nothing later was begun"
        )
        return Order("Wait until every replica is ready.", f"{self._line(target, *arguments)}{stop}")

    def scaled(self, change: Change) -> str:
        """The call that writes the count, whatever it was."""
        return self._line(change.target, "scale", self._workload(change.target), f"--replicas={change.new}")

    def record(self, target: Target) -> str:
        """The call that writes the bounds of an HPA down, for whoever holds it by other means than a script."""
        name, bounds = f"hpa/{target.scaler_name}", "jsonpath={.spec.minReplicas}:{.spec.maxReplicas}"
        read = self._line(target, "get", name, "-o", bounds)
        return f'{self._line(target, "annotate", name)} "{FORMER_BOUNDS}=$({read})"'

    def _scale(self, change: Change, what: str, *, recorded: bool) -> Order:
        counts = [f"--current-replicas={change.old}", f"--replicas={change.new}"]
        target = change.target
        line = self._line(target, "scale", self._workload(target), *counts)
        return Order(what, f"{self.call('asks', target, change.new)} || {line}" if recorded else line)

    def _patch_hpa(self, target: Target, bounds: int) -> str:
        # One patch for both: no state between in which the minimum exceeds the maximum.
        patch = json.dumps({"spec": {"minReplicas": bounds, "maxReplicas": bounds}})
        return self._line(target, "patch", f"hpa/{target.scaler_name}", "--type=merge", "-p", patch)

    def _line(self, target: Target, *arguments: str) -> str:
        return shlex.join(["kubectl", *self._options(target), *arguments])

    def _options(self, target: Target) -> list[str]:
        context = ["--context", target.cluster] if self.contexts and target.cluster else []
        return [*context, "-n", target.namespace]

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


def _named(target: Target) -> str:
    return f"{target.object.kind} {target.namespace}/{target.object.name}"


def _or_stop(sentence: str) -> str:
    return f" || stop 1 {shlex.quote(sentence)}"
