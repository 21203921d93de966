"""Services of a draft: models with their traffic, and the variants that serve them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from models.ids import AcceleratorId, LlmId, ServiceId, VariantId
from models.llm import Llm
from models.observation import EngineObservation, Observation, TrafficObservation, VariantObservation
from models.saturation import SaturationThresholds
from models.variant import Capacity, Cost, Parallelism, Variant
from models.workload import Bucket, Service
from planner.catalog import Catalog
from planner.drafting.capacity import Engines, capacity_of
from planner.drafting.notes import Notes
from planner.drafting.places import Seated

__all__ = ["Served", "services_of"]

_INPUT_TOKENS: Final = 1000
_OUTPUT_TOKENS: Final = 200
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Served:
    """Services, and which of their variants was observed as what.

    Attributes:
        services: of the draft.
        llms: that the catalog does not have.
        seated: variants that are in the draft.
    """

    services: tuple[Service, ...]
    llms: tuple[Llm, ...]
    seated: tuple[Seated, ...]


def identifier(text: str) -> str:
    """A text as a name in a scenario file."""
    return _NOT_IN_A_NAME.sub("-", text).strip("-._")[:100] or "unnamed"


def services_of(
    seen: Observation,
    variants: Sequence[VariantObservation],
    engines: Engines,
    catalog: Catalog,
    notes: Notes,
) -> Served:
    """Every model that has a variant whose accelerator is known.

    Args:
        seen: what was observed; its traffic.
        variants: with accelerators that the catalog knows, under its names.
        engines: of the observation.
        catalog: knows LLMs by their aliases.
        notes: is told what is assumed.
    """
    grouped: dict[tuple[str, str], list[VariantObservation]] = {}
    for variant in variants:
        grouped.setdefault((variant.namespace, variant.model), []).append(variant)
    names: set[str] = set()
    services: list[Service] = []
    llms: dict[str, Llm] = {}
    seated: list[Seated] = []
    for (namespace, model), members in grouped.items():
        name = _free(identifier(f"{namespace}-{model.rpartition('/')[2]}"), names)
        known = catalog.find_llm(model)
        if known is None:
            notes.take("not in the catalog, so that only what was measured is known of it", f"model {model}")
            llms[model] = Llm.model_validate({"id": _named(model), "opaque": True})
        mine = _seated(name, members)
        seated += mine
        ours = _Model(
            namespace=namespace,
            model=model,
            engines=tuple(
                dict.fromkeys(
                    (
                        *engines.of_model(namespace, model),
                        *(each for one in members for each in engines.of_variant(one)),
                    )
                )
            ),
            told=tuple(t for t in seen.traffic if (t.namespace, t.model) == (namespace, model)),
        )
        services.append(
            Service(
                id=ServiceId(name),
                llm=LlmId(known.id if known else _named(model)),
                namespace=namespace or "default",
                buckets=(_bucket(ours, notes),),
                variants=tuple(_variants(mine, engines, notes)),
            )
        )
    notes.take("no promises on latency are known: state TTFT and ITL where there are any")
    notes.take("starts take two minutes; nobody observes how long they take")
    return Served(tuple(services), tuple(llms.values()), tuple(seated))


def _free(wanted: str, names: set[str]) -> str:
    """The name, with a number where it is taken."""
    name, number = wanted, 2
    while name in names:
        name, number = f"{wanted}-{number}", number + 1
    names.add(name)
    return name


def _named(model: str) -> str:
    """A model as a name that a scenario may have."""
    return re.sub(r"[^A-Za-z0-9._:/@#+-]+", "-", model).lstrip("._:/@#+-")[:200] or "unnamed"


def _seated(service: str, members: Iterable[VariantObservation]) -> list[Seated]:
    names: set[str] = set()
    return [
        Seated(
            service=service,
            variant=_free(identifier(each.name), names),
            accelerator=each.accelerator,
            seen=each,
        )
        for each in members
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """What was seen of one model in one namespace."""

    namespace: str
    model: str
    engines: tuple[EngineObservation, ...]
    told: tuple[TrafficObservation, ...]

    @property
    def label(self) -> str:
        return f"{self.namespace}/{self.model}"


def _bucket(ours: _Model, notes: Notes) -> Bucket:
    """The traffic of a model as one request shape."""
    inputs = _mean((each.input_tokens, each.request_rps) for each in ours.engines)
    outputs = _mean((each.output_tokens, each.request_rps) for each in ours.engines)
    hits = _mean((each.hit_share, each.request_rps) for each in ours.engines)
    if inputs is None or outputs is None:
        assumed = f"lengths are not known: {_INPUT_TOKENS} tokens in and {_OUTPUT_TOKENS} out are assumed"
        notes.take(assumed, ours.label)
    return Bucket(
        id="observed",
        arrival_rps=_arrivals(ours, notes),
        input_tokens=_whole(inputs, _INPUT_TOKENS),
        output_tokens=_whole(outputs, _OUTPUT_TOKENS),
        cached_share=0.0 if hits is None else min(1.0, round(hits, 4)),
    )


def _whole(tokens: float | None, otherwise: int) -> int:
    return otherwise if tokens is None else min(10**8, max(1, round(tokens)))


def _mean(figures: Iterable[tuple[float | None, float | None]]) -> float | None:
    """Mean over engines that tell, weighted by the rates that they serve."""
    known = [(value, rps or 0.0) for value, rps in figures if value is not None]
    weight = sum(rps for _, rps in known)
    if not known:
        return None
    return sum(v * rps for v, rps in known) / weight if weight else sum(v for v, _ in known) / len(known)


def _arrivals(ours: _Model, notes: Notes) -> float:
    """What routers say that arrives; else what engines finish."""
    rates = [each.arrival_rps for each in ours.told if each.arrival_rps is not None]
    if rates:
        return min(1e7, round(sum(rates), 6))
    served = [each.request_rps for each in ours.engines if each.request_rps is not None]
    if not served:
        notes.take("traffic is not known: none is assumed; state its rate", ours.label)
        return 0.0
    notes.take("as many requests arrive as engines finish, since no router tells", ours.label)
    waiting = sum(each.waiting or 0.0 for each in ours.engines) + sum(
        each.queued or 0.0 for each in ours.told
    )
    if waiting >= 1:
        notes.take("requests wait, so more arrive than engines finish; raise the rate", ours.label)
    return min(1e7, round(sum(served), 6))


def _variants(mine: Sequence[Seated], engines: Engines, notes: Notes) -> Iterable[Variant]:
    """Variants with the capacity that they, or others like them, were seen to have."""
    thresholds = SaturationThresholds()
    seen = {
        one.variant: capacity_of(engines.of_variant(one.seen), one.seen.ready, thresholds) for one in mine
    }
    alike: dict[tuple[str, int, str], Capacity] = {}
    for one in mine:
        if seen[one.variant].capacity.rated_rps is not None:
            alike.setdefault(_kind(one), seen[one.variant].capacity)
    for one in mine:
        label = f"{one.service}/{one.variant}"
        capacity = seen[one.variant].capacity
        if capacity.rated_rps is not None:
            notes.take(
                "capacity from rate and KV-cache usage of what runs, as a straight line up to τ", label
            )
        elif _kind(one) in alike:
            capacity = alike[_kind(one)]
            notes.take("capacity of another variant on the same accelerators, since it has no load", label)
        else:
            notes.take("capacity from profiles and formulas of the catalog, since it has no load", label)
        yield _variant(one, capacity, notes)


def _kind(one: Seated) -> tuple[str, int, str]:
    return one.accelerator, one.seen.gpus, one.seen.role.value


def _variant(one: Seated, capacity: Capacity, notes: Notes) -> Variant:
    label, seen = f"{one.service}/{one.variant}", one.seen
    least, most = seen.min_replicas, seen.max_replicas
    if seen.paused:
        least = most = seen.ready + seen.pending
        notes.take("paused: it keeps the replicas that it has", label)
    runs = seen.ready + seen.pending
    if most is not None and runs > most:
        notes.take("more replicas run than its scaler allows: as many as run are allowed", label)
        most = runs
    return Variant(
        id=VariantId(one.variant),
        accelerator=AcceleratorId(one.accelerator),
        parallelism=Parallelism(tp=seen.gpus),
        role=seen.role,
        engine=seen.engine or None,
        pods_per_replica=seen.pods_per_replica if seen.gpus % seen.pods_per_replica == 0 else 1,
        min_replicas=least,
        max_replicas=most,
        cost=Cost(relative=seen.cost),
        capacity=capacity,
        engine_arguments=seen.engine_arguments,
        object=seen.target.but(namespace=seen.target.namespace or seen.namespace or None),
    )
