"""Reasons, limits and figures as people read them; shared by every entrance.

Sentences are made here and nowhere below: what lies deeper in the house hands over values.
"""

from __future__ import annotations

from planner.wording.choices import (
    amount_phrase,
    difference_sentence,
    gain_phrase,
    is_worth_nothing,
    runner_up_sentence,
    worth_phrase,
    worthless_sentence,
)
from planner.wording.fronts import axis_figure, axis_name, front_sentence
from planner.wording.hopeless import (
    hopeless_sentence,
    hopeless_shape_sentence,
    refusal_sentences,
    rejection_sentence,
)
from planner.wording.limits import (
    ROWS_SHOWN,
    binding_sentence,
    conflict_rows,
    conflict_sentence,
    family_phrase,
    limit_phrase,
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
from planner.wording.origins import modeled_sentence
from planner.wording.phrases import capital, counted, some_of
from planner.wording.promises import distance_phrase, promises_phrase, statistic_phrase
from planner.wording.reasons import reason_sentence
from planner.wording.relaxations import (
    NOTHING_ENOUGH,
    latency_promises,
    relaxation_sentence,
    together_sentences,
)
from planner.wording.statuses import (
    answer_name,
    engines_sentence,
    headline,
    level_figures,
    level_name,
    level_rows,
    promise_sentence,
    seconds_sentence,
)
from planner.wording.waves import (
    near_sentence,
    rollout_sentence,
    stuck_sentence,
    time_span,
    wave_sentence,
)

__all__ = [
    "NOTHING_ENOUGH",
    "ROWS_SHOWN",
    "amount_phrase",
    "answer_name",
    "axis_figure",
    "axis_name",
    "binding_sentence",
    "capital",
    "conflict_rows",
    "conflict_sentence",
    "counted",
    "difference_sentence",
    "distance_phrase",
    "engines_sentence",
    "family_phrase",
    "front_sentence",
    "gain_phrase",
    "gpu_label",
    "headline",
    "hopeless_sentence",
    "hopeless_shape_sentence",
    "is_worth_nothing",
    "latency_promises",
    "level_figures",
    "level_name",
    "level_rows",
    "limit_phrase",
    "modeled_sentence",
    "money",
    "near_sentence",
    "now_and_planned",
    "number",
    "number_up",
    "percent",
    "promise_sentence",
    "promises_phrase",
    "quantity",
    "quantity_up",
    "reason_sentence",
    "refusal_sentences",
    "rejection_sentence",
    "relaxation_sentence",
    "rollout_sentence",
    "runner_up_sentence",
    "seconds_sentence",
    "some_of",
    "statistic_phrase",
    "stuck_sentence",
    "time_span",
    "together_sentences",
    "used_of",
    "wave_sentence",
    "worth_phrase",
    "worthless_sentence",
]
