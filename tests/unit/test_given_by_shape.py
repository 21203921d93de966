"""Rates that a variant states shape by shape."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from models.explanation import Reason
from models.hardware import Accelerator
from models.llm import Llm
from models.performance import Rating, RatingQuestion, Unrated
from models.saturation import SaturationThresholds
from models.variant import Capacity, Variant
from models.workload import Slo
from planner.performance.given import rate_given

RATES = [(100, 50, 4.0), (1000, 50, 2.0), (1000, 500, 1.0), (100, 500, 0.0)]


def asked(input_tokens: int, output_tokens: int) -> Rating | Unrated | None:
    shapes = [{"input_tokens": i, "output_tokens": o, "rated_rps": rate, "id": None} for i, o, rate in RATES]
    capacity = {"by_shape": [{k: v for k, v in shape.items() if k != "id"} for shape in shapes]}
    attention = {"kind": "gqa", "kv_heads": 1, "head_dim": 8}
    return rate_given(
        RatingQuestion(
            llm=Llm.model_validate({"id": "x", "parameters": 10, "layers": 1, "attention": attention}),
            accelerator=Accelerator(id="acc", vendor="Acme", memory_bytes=10**9),
            variant=Variant.model_validate({"id": "v", "accelerator": "acc", "capacity": capacity}),
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            slo=Slo(),
            thresholds=SaturationThresholds(),
        )
    )


@pytest.mark.parametrize(
    ("shape", "rate"),
    [
        ((100, 50), 4.0),
        ((1000, 500), 1.0),
        ((10, 10), 4.0),
        ((101, 50), 2.0),
        ((500, 51), 1.0),
        # Longer requests are carried, so this one is too, whatever the cell beside says.
        ((100, 499), 1.0),
    ],
)
def test_a_shape_counts_as_one_at_least_as_long(shape: tuple[int, int], rate: float) -> None:
    answer = asked(*shape)
    assert isinstance(answer, Rating)
    assert answer.rated_rps == rate


@pytest.mark.parametrize(
    ("shape", "facts"),
    [
        ((100, 500), {"asked_shape": "100 × 500"}),
        ((1001, 10), {"asked_shape": "1001 × 10", "longest_shape": "1000 × 500"}),
    ],
)
def test_a_shape_without_a_rate_is_not_carried(shape: tuple[int, int], facts: dict[str, str]) -> None:
    answer = asked(*shape)
    assert isinstance(answer, Unrated)
    assert (answer.reason, answer.facts) == (Reason.SHAPE_NOT_CARRIED, facts)


def test_one_kind_of_rate_and_each_shape_once() -> None:
    shape = {"input_tokens": 1, "output_tokens": 1, "rated_rps": 1.0}
    with pytest.raises(ValidationError, match="rated_rps or by_shape"):
        Capacity.model_validate({"rated_rps": 1.0, "by_shape": [shape]})
    with pytest.raises(ValidationError, match="twice"):
        Capacity.model_validate({"by_shape": [shape, shape]})
