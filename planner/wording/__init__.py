"""Reasons, limits and figures as people read them; shared by every entrance.

Sentences are made here and nowhere below: what lies deeper in the house hands over values.
"""

from __future__ import annotations

from planner.wording.limits import (
    binding_sentence,
    conflict_sentence,
    family_phrase,
    limit_phrase,
    relaxation_sentence,
)
from planner.wording.numbers import (
    gpu_label,
    money,
    now_and_planned,
    number,
    number_up,
    percent,
    quantity,
    quantity_up,
    used_of,
)
from planner.wording.reasons import reason_sentence
from planner.wording.statuses import (
    headline,
    level_figures,
    level_name,
    level_rows,
    promise_sentence,
    seconds_sentence,
)

__all__ = [
    "binding_sentence",
    "conflict_sentence",
    "family_phrase",
    "gpu_label",
    "headline",
    "level_figures",
    "level_name",
    "level_rows",
    "limit_phrase",
    "money",
    "now_and_planned",
    "number",
    "number_up",
    "percent",
    "promise_sentence",
    "quantity",
    "quantity_up",
    "reason_sentence",
    "relaxation_sentence",
    "seconds_sentence",
    "used_of",
]
