"""What routes requests to a pod, and how it is taken out of that without leaving its workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.control.cluster import Api
from planner.control.cluster.kinds import EARLIER_INFERENCE_POOLS, INFERENCE_POOLS, SERVICES
from planner.control.cluster.reading import Object, at, items_of, name_of, text_at, texts_of

__all__ = ["OUT", "SERVING", "Router", "WayOut", "owned_keys", "routers_of", "way_out"]

SERVING: Final = "fleetplan.dev/serving"
"""Label that is best selected on for routing, and type of the readiness gate for clusters before 1.22."""
OUT: Final = "draining"
"""What a label holds that routing selects on, while its pod is on its way out."""
_HEADLESS: Final = "None"
_OF_CONTROLLERS: Final = frozenset(
    {"pod-template-hash", "controller-revision-hash", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"}
)  # fmt: skip
_OF_GROUPS: Final = "leaderworkerset.sigs.k8s.io/"
_PREFERRED: Final = ("llm-d.ai/", "inference")


@dataclass(frozen=True, slots=True)
class Router:
    """A Service or an InferencePool that selects pods.

    Attributes:
        name: kind and name.
        selector: labels that its pods have.
    """

    name: str
    selector: Mapping[str, str]

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels gets requests from it."""
        return self.selector.items() <= labels.items()


@dataclass(frozen=True, slots=True)
class WayOut:
    """How a pod is taken out of routing.

    Attributes:
        labels: that are set to :data:`OUT`; empty: none needs to be, or none can be.
        problem: why it cannot be taken out; empty: it can.
    """

    labels: tuple[str, ...] = ()
    problem: str = ""


def routers_of(api: Api, namespace: str) -> tuple[Router, ...]:
    """Everything in a namespace that routes requests to pods.

    Headless Services do not count: peers find one another through them, and they hold no requests.

    Raises:
        ClusterFault: it cannot be told.
    """
    found: list[Router] = []
    for thing in api.list(SERVICES, namespace).items:
        if text_at(thing, "spec", "clusterIP") != _HEADLESS:
            found += _router("Service", thing, at(thing, "spec", "selector"))
    for kind in (INFERENCE_POOLS, EARLIER_INFERENCE_POOLS):
        listing = api.list_if_served(kind, namespace)
        for thing in () if listing is None else listing.items:
            selector = at(thing, "spec", "selector")
            found += _router("InferencePool", thing, at(selector, "matchLabels") or selector)
    return tuple(found)


def _router(kind: str, thing: Object, selector: object) -> Iterator[Router]:
    labels = texts_of(selector)
    if labels:
        yield Router(f"{kind} {name_of(thing)}", labels)


def owned_keys(workload: Object) -> frozenset[str]:
    """Labels by which a workload knows its pods: a pod without them is no more its own, and it would start another."""
    selector = at(workload, "spec", "selector")
    keys = {text_at(row, "key") for row in items_of(at(selector, "matchExpressions"))}
    return frozenset(texts_of(at(selector, "matchLabels"))) | keys | _OF_CONTROLLERS


def way_out(labels: Mapping[str, str], owned: frozenset[str], routers: Sequence[Router]) -> WayOut:
    """The labels that take a pod out of everything that routes to it, as few as there may be.

    Args:
        labels: of the pod.
        owned: labels that have to stay.
        routers: of its namespace.
    """
    chosen: list[str] = []
    selecting = [each for each in routers if each.selects(labels)]
    if not selecting:
        return WayOut(
            problem="no Service and no InferencePool selects its pods, so nobody knows what routes to them"
        )
    for router in selecting:
        free = sorted(_free(router.selector, owned), key=_preference)
        if not free:
            keys = ", ".join(sorted(router.selector))
            return WayOut(
                problem=f"{router.name} selects by labels alone that its workload selects by too ({keys}): "
                f"add the label {SERVING}: \"true\" to its pods and to that selector"
            )  # fmt: skip
        if not set(free) & set(chosen):
            chosen.append(free[0])
    return WayOut(tuple(chosen))


def _free(keys: Iterable[str], owned: frozenset[str]) -> Iterator[str]:
    return (key for key in keys if key not in owned and not key.startswith(_OF_GROUPS))


def _preference(key: str) -> tuple[int, str]:
    if key == SERVING:
        return 0, key
    return (1 if any(word in key for word in _PREFERRED) else 2), key
