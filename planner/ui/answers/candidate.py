"""A candidate: whether it is one, what a replica carries, holds, costs and draws, and where each number is from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from models.performance import Rating
from models.picture import CandidatePicture, PlacePicture
from models.problem import CostUnit
from planner.ui.answers.frames import show_rows
from planner.ui.answers.latency import show_latency
from planner.ui.answers.memory import show_memory
from planner.ui.answers.provenance import code_meanings, provenance_rows, source_rows
from planner.ui.words import said, spaced
from planner.wording import money, number, rejection_sentence, time_span

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

__all__ = ["show_candidate"]


def show_candidate(found: CandidatePicture, slot: DeltaGenerator) -> None:
    """All of it.

    Args:
        found: what is known.
        slot: where the pool is chosen: only now it is known which there are.
    """
    with slot:
        place = _chosen(found)
    _show_verdict(found, place)
    _show_figures(found, place)
    st.header("Memory of a replica")
    show_memory(found.picture)
    st.header("Latency over load")
    show_latency(found)
    st.header("Where each number is from")
    show_rows(
        provenance_rows(found, place),
        name="provenance",
        says="Each number of this candidate with its origin, its source and the nearest measured point.",
    )
    _show_codes(found)
    st.header("What each source says")
    show_rows(
        source_rows(found),
        name="sources",
        says="What planning uses, and what each source of performance says on its own.",
        help={
            "to τ, req/s": "Inside the promises up to saturation; planning keeps to the rated rate.",
            "between": "Where a modeled rate lies, from the residuals of measured runs.",
        },
    )


def _show_codes(found: CandidatePicture) -> None:
    """What the codes of sources stand for, those that are used here."""
    meanings = code_meanings(found)
    if meanings:
        with st.expander("What the codes of sources stand for", icon=":material/menu_book:"):
            st.markdown(
                "\n".join(f"- **{said(code)}**: {said(meaning)}" for code, meaning in meanings.items())
            )


def _chosen(found: CandidatePicture) -> PlacePicture | None:
    """The place that is looked at; None: there is none."""
    if not found.places:
        return None
    names = {place.pool: place for place in found.places}
    # Where it may run is the first to be looked at.
    first = next((place.pool for place in found.places if place.candidates), found.places[0].pool)
    variant = found.picture.question.variant
    pool = st.selectbox(
        "Pool",
        [*names],
        index=[*names].index(first),
        format_func=lambda name: name if names[name].candidates else f"{name} (refused)",
        key=f"candidate-pool-{found.service}-{variant.id}",
        help="Pools that the variant may use, or runs in; the refused ones say why.",
    )
    return names[pool]


def _show_verdict(found: CandidatePicture, place: PlacePicture | None) -> None:
    if place is None:
        reasons = [rejection_sentence(each) for each in found.nowhere] or ["no pool is there for it"]
        _show_refusal("No pool can run it", reasons)
        return
    sentences = [rejection_sentence(each) for each in place.rejections]
    if not place.candidates:
        _show_refusal("No candidate here", sentences)
        return
    candidate = place.candidates[0]
    many = f", in {len(place.candidates)} fabric domains" if len(place.candidates) > 1 else ""
    st.markdown(
        f":green-badge[:material/check: candidate] {said(f'{candidate.variant} @ {candidate.pool}{many}')}"
    )
    if candidate.unrated:
        st.markdown(
            ":orange[:material/warning:] It runs, and nothing says what it carries: it counts for nothing."
        )
    for sentence in sentences:
        st.markdown(f"- {said(sentence)}")


def _show_refusal(heading: str, sentences: list[str]) -> None:
    st.markdown(f":red-badge[:material/block: refused] **{heading}**")
    st.markdown("\n".join(f"- {said(sentence)}" for sentence in sentences))


def _show_figures(found: CandidatePicture, place: PlacePicture | None) -> None:
    answer, memory = found.picture.answer, found.picture.memory
    rated = answer.rated_rps if isinstance(answer, Rating) else None
    surge = answer.surge_rps if isinstance(answer, Rating) else None
    tokens = None if memory is None or memory.missing_bytes else memory.kv_tokens
    power = None if place is None else place.power_w
    figures = (
        ("Rated, req/s", _known(rated), "Largest rate inside the promises and the trigger, τ - γ."),
        ("Surge, req/s", _known(surge), "Largest rate inside the promises up to τ."),
        ("KV cache, tokens", _known(tokens), "What the cache of a replica holds."),
        ("Price", _price(place), "Of one replica."),
        ("Power, W", _known(power, 5), "Draw of one replica."),
        ("Time to start", time_span(found.picture.question.variant.startup_s), "From request to ready."),
    )
    for column, (name, value, meaning) in zip(st.columns(len(figures)), figures, strict=True):
        column.metric(name, spaced(value), help=meaning)


def _known(value: float | None, digits: int = 3) -> str:
    return "unknown" if value is None else number(value, digits)


def _price(place: PlacePicture | None) -> str:
    if place is None or place.cost is None:
        return "unknown"
    return f"{money(place.cost)}{' $/h' if place.cost_unit is CostUnit.USD_PER_H else ''}"
