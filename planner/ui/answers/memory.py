"""What the memory of a replica holds, or by how much it is too small."""

from __future__ import annotations

from typing import Final

import streamlit as st

from models.picture import VariantPicture
from planner.charts.memory import memory_chart, memory_rows
from planner.ui.answers.drawing import show_chart
from planner.ui.words import said
from planner.wording import number, percent, quantity

__all__ = ["show_memory"]

_GIB: Final = 2.0**30


def show_memory(picture: VariantPicture) -> None:
    """One bar per accelerator, and what it means in tokens and requests."""
    memory = picture.memory
    if memory is None:
        st.caption("The LLM states no figures to reckon with, so nobody can say what its weights take.")
        return
    if memory.missing_bytes:
        st.markdown(
            f":red[:material/error:] **Does not fit:** {said(_gib(memory.missing_bytes))} are missing on each GPU."
        )
    gpus = picture.question.variant.parallelism.gpus
    rows = memory_rows(memory, gpus=gpus)
    parts = ", ".join(
        f"{row['part']} {_gib(row['gib'] * _GIB)}" for row in rows if row["gpu"] == rows[0]["gpu"]
    )
    says = said(
        f"Of {_gib(memory.memory_bytes)} on each of {quantity(gpus, 'GPU')}: {parts}. "
        "The dashed line is what the engine may use. Every GPU is drawn as the fullest one."
    )
    chart, words = st.columns([3, 2], gap="medium")
    with chart:
        show_chart(memory_chart(rows, memory), rows, name="memory", says=says)
    if memory.kv_tokens is not None and not memory.missing_bytes:
        words.markdown(said(_tokens(picture)))


def _tokens(picture: VariantPicture) -> str:
    """What the cache holds, and up to where it may be filled."""
    memory, limits = picture.memory, picture.question.thresholds
    if memory is None or memory.kv_tokens is None:
        return ""
    stated = picture.question.variant.capacity.kv_tokens is not None
    shape = "" if memory.requests is None else f", {number(memory.requests)} requests of this shape at once"
    return (
        f"The cache of a replica holds {quantity(memory.kv_tokens, 'tokens')}{shape} "
        f"({'as the variant states' if stated else 'by formula'}). Planning fills it to "
        f"{percent(limits.tau_kv - limits.gamma_kv)} (trigger); at {percent(limits.tau_kv)} (τ) a replica is saturated: "
        f"{number(memory.kv_tokens * (limits.tau_kv - limits.gamma_kv))} and "
        f"{quantity(memory.kv_tokens * limits.tau_kv, 'tokens')}."
    )


def _gib(size: float) -> str:
    return f"{number(size / _GIB, 3)} GiB"
