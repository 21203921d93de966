"""Choosing what to look at: a service, one of its variants, and a request shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import streamlit as st

from models.scenario import Scenario
from models.variant import Variant
from models.workload import Bucket, Service
from planner.ui.words import spaced
from planner.ui.workspace import Draft
from planner.wording import number

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

__all__ = ["Choice", "choose"]

_LAST: Final = "fleetplan.candidate"
_OTHER: Final = "another shape"
_MOST_TOKENS: Final = 10**7


@dataclass(frozen=True, slots=True)
class Choice:
    """What is looked at.

    Attributes:
        service: of the draft.
        variant: of that service.
        bucket: one of the service, or a shape that the visitor asks for.
    """

    service: str
    variant: str
    bucket: Bucket


def choose(draft: Draft, places: Sequence[DeltaGenerator]) -> Choice | None:
    """Three choices, each in its place; None: no service has a variant."""
    services: dict[str, Service] = {each.id: each for each in draft.scenario.services if each.variants}
    if not services:
        return None
    left, middle, right = places
    before = _last(draft.scenario)
    names: list[str] = [*services]
    with left:
        name = st.selectbox(
            "Service",
            names,
            index=names.index(before[0]) if before[0] in services else 0,
            key=f"candidate-service-{draft.name}",
            help="Type to search.",
        )
    service = services[name]
    variants: list[str] = [each.id for each in service.variants]
    with middle:
        variant = st.selectbox(
            "Variant",
            variants,
            index=variants.index(before[1]) if before[1] in variants else 0,
            format_func=lambda each: _variant(service, each),
            key=f"candidate-variant-{draft.name}-{name}",
        )
    st.session_state[_LAST] = (name, variant)
    with right:
        bucket = _bucket(service, key=f"{draft.name}-{name}")
    return Choice(name, variant, bucket)


def _last(scenario: Scenario) -> tuple[str, str]:
    """What was looked at last; before that, what runs, or comes first."""
    running = scenario.fleet.running
    first = (running[0].service, running[0].variant) if running else (scenario.services[0].id, "")
    found: tuple[str, str] = st.session_state.get(_LAST, first)
    return found


def _variant(service: Service, name: str) -> str:
    variant: Variant = next(each for each in service.variants if each.id == name)
    role = "" if variant.role == "both" else f" {variant.role}"
    return f"{name}: {variant.accelerator} {variant.parallelism.label}{role}"


def _bucket(service: Service, *, key: str) -> Bucket:
    """A bucket of the service, or another shape."""
    buckets: dict[str, Bucket] = {each.id: each for each in service.buckets}
    order = sorted(buckets, key=lambda name: -buckets[name].arrival_rps)
    chosen = st.selectbox(
        "Request shape",
        [*order, _OTHER],
        format_func=lambda name: name if name == _OTHER else _shape(buckets[name]),
        key=f"candidate-bucket-{key}",
        help="Input × output length; the shape at which most requests arrive comes first.",
    )
    if chosen != _OTHER:
        return buckets[chosen]
    with st.form(f"candidate-shape-{key}"):
        inputs = st.number_input("Input, tokens", 1, _MOST_TOKENS, buckets[order[0]].input_tokens, step=256)
        outputs = st.number_input("Output, tokens", 1, _MOST_TOKENS, buckets[order[0]].output_tokens, step=64)
        st.form_submit_button("Look", icon=":material/search:", width="stretch")
    return buckets[order[0]].but(input_tokens=inputs, output_tokens=outputs, cached_share=0.0)


def _shape(bucket: Bucket) -> str:
    return spaced(f"{bucket.id}: {number(bucket.input_tokens, 9)} × {number(bucket.output_tokens, 9)} tokens")
