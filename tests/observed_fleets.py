"""Builders of what a controller observes: variants with engines, traffic, pools; and cycles over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from models.controller import ControllerSettings
from models.hardware import Node, Pool
from models.observation import (
    EngineObservation,
    Observation,
    QuotaObservation,
    TrafficObservation,
    VariantObservation,
)
from models.variant import KubernetesObject
from planner.clock import FakeClock
from planner.control.deciding import Decided, Decider, DecidingState

NOW_S = 1_000_000.0
KV_TOKENS = 16_000.0


def a_variant(name: str = "v", *, ready: int = 1, **more: Any) -> VariantObservation:
    """A variant whose replicas are all ready, on H100s; ``wanted`` and ``pending`` follow from one another."""
    wanted = more.pop("wanted", ready + more.get("pending", 0))
    pending = more.pop("pending", max(0, (wanted or 0) - ready))
    pods = tuple(f"{name}-{place}" for place in range(ready))
    fields: dict[str, Any] = {
        "name": name, "namespace": "prod", "model": "llm", "accelerator": "H100", "cost": 10.0,
        "target": KubernetesObject(name=f"{name}-target", namespace=more.get("namespace", "prod"), scaler_name=name),
        "min_replicas": 0, "max_replicas": 100, "wanted": wanted, "ready": ready, "pending": pending, "pods": pods,
    }  # fmt: skip
    return VariantObservation(**fields | more)


def engines_of(
    variant: VariantObservation, *loads: tuple[float | None, float | None], **more: Any
) -> tuple[EngineObservation, ...]:
    """One engine for each ready pod: (KV usage, waiting); fewer loads than pods: the last one is of the rest."""
    given = list(loads or ((0.0, 0.0),))
    given += [given[-1]] * (len(variant.pods) - len(given))
    fields: dict[str, Any] = {
        "namespace": variant.namespace, "cluster": variant.cluster, "variant": variant.name, "model": variant.model,
        "age_s": 5.0, "kv_tokens": KV_TOKENS, "input_tokens": 100.0, "output_tokens": 50.0, "token_rate": 10.0,
        "request_rps": 1.0,
    }  # fmt: skip
    return tuple(
        EngineObservation(
            **{
                "instance": f"{pod}:8000", "pod": pod, "kv_usage": kv, "kv_now": kv, "waiting": queue,
                "waiting_now": queue, "running": None if kv is None else round(10 * kv),
            }
            | fields
            | more
        )
        for pod, (kv, queue) in zip(variant.pods, given, strict=False)
    )  # fmt: skip


def some_traffic(model: str = "llm", **more: Any) -> TrafficObservation:
    """Traffic that a router tells of: ten requests a second, nothing held."""
    fields: dict[str, Any] = {
        "model": model, "namespace": "prod", "arrival_rps": 10.0, "queued": 0.0, "arrived": 6000.0,
        "completed": 6000.0, "in_flight": 5.0,
    }  # fmt: skip
    return TrafficObservation(**fields | more)


NO_TRAFFIC = {"arrival_rps": 0.0, "queued": 0.0, "arrived": 0.0, "in_flight": 0.0, "completed": 0.0}


def a_pool(gpus: int = 8, nodes: int = 4, accelerator: str = "H100", **more: Any) -> Pool:
    """Nodes with so many accelerators each, all free."""
    node = {name: more.pop(name) for name in ("cordoned", "foreign_gpus", "tainted", "ready") if name in more}
    prefix = f"{accelerator.lower()}-node"
    return Pool(
        id=f"{accelerator}-pool",
        accelerator=accelerator,
        nodes=tuple(Node(id=f"{prefix}-{place}", gpus=gpus, **node) for place in range(nodes)),
        **more,
    )


def observed(
    variants: Iterable[VariantObservation],
    engines: Iterable[EngineObservation] = (),
    *,
    traffic: Iterable[TrafficObservation] | None = None,
    pools: Iterable[Pool] | None = None,
    quotas: Iterable[QuotaObservation] = (),
    **more: Any,
) -> Observation:
    """An observation with room for everything and traffic, unless said otherwise."""
    return Observation(
        at_s=more.pop("at_s", NOW_S),
        variants=tuple(variants),
        engines=tuple(engines),
        traffic=tuple((some_traffic(),) if traffic is None else traffic),
        pools=tuple((a_pool(),) if pools is None else pools),
        quotas=tuple(quotas),
        **more,
    )


def settings(*, overrides: Sequence[dict[str, Any]] = (), **rules: Any) -> ControllerSettings:
    """Settings with these rules; without windows of stabilization unless they are given."""
    top = {name: rules.pop(name) for name in ("constrained", "policies", "cycle_s") if name in rules}
    return ControllerSettings.model_validate(
        {"rules": {"stabilize_down_s": 0.0, **rules}, "overrides": list(overrides), **top}
    )


class Cycles:
    """A decider with its memory, cycle after cycle."""

    def __init__(self, given: ControllerSettings | None = None, **rules: Any) -> None:
        self.settings = given or settings(**rules)
        self.state = DecidingState()
        self.clock = FakeClock(NOW_S)
        self.decider = Decider(clock=self.clock)
        self.last: Decided | None = None

    def __call__(self, observation: Observation, *, after_s: float = 15.0) -> dict[str, int]:
        """Decide, so many seconds after the last time; replicas by name of the variant."""
        self.clock.sleep(after_s)
        self.last, self.state = self.decider.decide(
            observation, state=self.state, settings=self.settings, now_s=self.clock.unix_s()
        )
        return {one.variant.name: one.desired for one in self.last.decisions}

    def why(self, name: str) -> str:
        """The reason of the last decision on a variant."""
        assert self.last is not None
        return next(one.reason for one in self.last.decisions if one.variant.name == name)

    def restart(self) -> None:
        """Another process, which reads what this one wrote."""
        self.state = DecidingState.from_json(self.state.to_json())
        self.decider = Decider(clock=self.clock)
