"""What limits the plan, and beside each limit the price of the next step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import streamlit as st

from models.explanation import BindingRow, Worth
from models.report import Report
from planner.ui.answers.frames import show_rows
from planner.ui.words import said, spaced
from planner.wording import (
    amount_phrase,
    binding_sentence,
    capital,
    gain_phrase,
    is_worth_nothing,
    worth_phrase,
    worthless_sentence,
)

__all__ = ["limit_rows", "show_limits"]

_OWN: Final = {"rate", "headroom"}
"""Families of single services, in which whole replicas nearly always bind."""

_LISTED: Final = 15
"""So many limits are told as sentences; more are a table."""

_OF_A_POOL: Final = {"placement": "gpus", "nodes": "nodes"}


def show_limits(report: Report, worth: Sequence[Worth] | None) -> None:
    """A line per limit that binds; what else is worth something below.

    Args:
        report: of the plan.
        worth: what a little more of each limit is worth; None: not asked for.
    """
    rows = limit_rows(report, worth)
    if 0 < len(rows) <= _LISTED:
        st.markdown("\n".join(f"- {_item(row)}" for row in rows))
    elif rows:
        show_rows(
            rows,
            name="limits",
            says="Limits under which not even the smallest replica would still fit, with the price of the next step.",
        )
    else:
        st.caption("No shared limit binds: every pool, quota, cap and budget has room for one more replica.")
    if not worth:
        return
    told = {_asked_of(row) for row in _shared(report)}
    nothing = [each for each in worth if is_worth_nothing(each) and (each.family, each.key) not in told]
    if nothing:
        st.caption(said(worthless_sentence(nothing)))


def _item(row: dict[str, str]) -> str:
    price = f"{row['one step']}: {row['is worth']}" if row["one step"] else row["is worth"]
    first = row["first step that pays"]
    return f"{said(row['limit'])}  \n  {said(price)}{said(f'; {first}') if first else ''}"


def limit_rows(report: Report, worth: Sequence[Worth] | None) -> list[dict[str, str]]:
    """Limits that bind, then whatever else is worth something."""
    known = {(each.family, each.key): each for each in worth or ()}
    rows, told = [], set()
    for row in _shared(report):
        each = known.get(_asked_of(row))
        told.add(_asked_of(row))
        rows.append(_row(spaced(binding_sentence(row)), each, asked=worth is not None))
    return [*rows, *_others(worth or (), told)]


def _shared(report: Report) -> list[BindingRow]:
    return [row for row in report.explanation.binding if row.family not in _OWN]


def _others(worth: Iterable[Worth], told: set[tuple[str, tuple[str, ...]]]) -> list[dict[str, str]]:
    return [
        _row(capital(worth_phrase(each)), each, asked=True)
        for each in worth
        if (each.family, each.key) not in told and not is_worth_nothing(each)
    ]


def _row(limit: str, worth: Worth | None, *, asked: bool) -> dict[str, str]:
    if worth is None:
        unknown = (
            "What more of it is worth was not found in the time given."
            if asked
            else "What more of it is worth is not known yet: look closer."
        )
        return {"limit": limit, "one step": "", "is worth": unknown, "first step that pays": ""}
    first = worth.first
    pays = "" if first is None or first.amount == worth.one.amount else _step(worth)
    return {
        "limit": limit,
        "one step": spaced(amount_phrase(worth, worth.one)),
        "is worth": spaced(gain_phrase(worth.one)),
        "first step that pays": spaced(pays),
    }


def _step(worth: Worth) -> str:
    first = worth.first
    return "" if first is None else f"{amount_phrase(worth, first)}: {gain_phrase(first)}"


def _asked_of(row: BindingRow) -> tuple[str, tuple[str, ...]]:
    """Whose worth answers for a row: room on single nodes is had with more GPUs of the pool."""
    family = _OF_A_POOL.get(row.family)
    return (row.family, row.key) if family is None else (family, row.key[:1])
