"""Counts and lengths as people write them, and what is said where a unit does not fit the field."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from models.hardware import Node, NodeGrowth, Quota
from models.scenario import Limits
from models.units import Integer, TokenCount
from models.value import Value
from models.variant import Parallelism, VariantId
from models.workload import Bucket, Service, Survive


class Traffic(Value):
    """One length and one plain number."""

    length: TokenCount = 1
    number: Integer = 0


@pytest.mark.parametrize(
    ("written", "length"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("4096 tokens", 4096),
        ("14k tokens", 14_000),
        ("8k", 8000),
        ("1.5k", 1500),
        ("0.2M tokens", 200_000),
        ("4_096 tok", 4096),
    ],
)
def test_a_length_in_tokens(written: object, length: int) -> None:
    assert Traffic.model_validate({"length": written}).length == length


@pytest.mark.parametrize("written", ["1.5 tokens", "0.0005k", 0, "0 tokens", True, "8 GPUs", "many"])
def test_no_length(written: object) -> None:
    with pytest.raises(ValidationError):
        Traffic.model_validate({"length": written})


@pytest.mark.parametrize(
    ("noun", "field", "written", "allowed"),
    [
        (Bucket, "input_tokens", "8 GPUs", "token, tokens, tok, k, k tokens, m, m tokens"),
        (Node, "gpus", "8 tokens", "gpu, gpus"),
        (Node, "foreign_gpus", "8 nodes", "gpu, gpus"),
        (Node, "count", "8 GPUs", "node, nodes"),
        (NodeGrowth, "max_nodes", "8 GPUs", "node, nodes"),
        (Quota, "gpus", "8 replicas", "gpu, gpus"),
        (Service, "min_replicas", "8 nodes", "replica, replicas"),
        (Limits, "max_changes", "8 replicas", "change, changes"),
    ],
)
def test_a_unit_that_does_not_fit_names_those_that_do(
    noun: type[Value], field: str, written: str, allowed: str
) -> None:
    assert said(noun, field, written).endswith(f"allowed: a plain number or one with {allowed}")


def test_a_degree_has_no_unit() -> None:
    assert said(Parallelism, "tp", "4 GPUs").endswith("allowed: a plain number")


@pytest.mark.parametrize(
    ("field", "written"),
    [("gpus", "8 GPUs"), ("count", "8 nodes"), ("foreign_gpus", "8 gpu"), ("gpus", "8"), ("gpus", 8.0)],
)
def test_a_count_with_what_it_counts(field: str, written: object) -> None:
    node = Node.model_validate({"id": VariantId("n"), "gpus": 8} | {field: written})
    assert getattr(node, field) == 8


@pytest.mark.parametrize(
    ("noun", "field"), [(Service, "priority"), (Service, "min_replicas"), (Node, "gpus"), (Traffic, "number")]
)
@pytest.mark.parametrize("written", [True, False])
def test_true_and_false_are_no_numbers(noun: type[Value], field: str, written: bool) -> None:
    assert said(noun, field, written).endswith("found true or false; allowed: a number")


@pytest.mark.parametrize(("written", "number"), [(-2, -2), ("7", 7), (3.0, 3)])
def test_a_plain_number(written: object, number: int) -> None:
    assert Traffic.model_validate({"number": written}).number == number


def test_to_survive_with_nothing_left_is_no_promise() -> None:
    assert Survive.model_validate({"share": "0 %"}).share == 0
    with pytest.raises(ValidationError):
        Survive.model_validate({"share": "-1 %"})


def said(noun: type[Value], field: str, written: object) -> str:
    """What validation says of one field."""
    with pytest.raises(ValidationError) as caught:
        noun.model_validate({field: written})
    return next(error["msg"] for error in caught.value.errors() if error["loc"] == (field,))
