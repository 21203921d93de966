"""A product of figures that each are in range is a finding where it is not, never a fault of ours."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from models.units import Rps, Watts
from planner.errors import ConfigurationError
from planner.sizing.ranges import products_in_range


def test_a_product_out_of_range_is_a_finding_with_figure_and_bound() -> None:
    with pytest.raises(ConfigurationError) as caught, products_in_range():
        TypeAdapter(dict[str, Watts]).validate_python({"power_w": 5e12})
    (finding,) = caught.value.findings
    assert "power_w" in finding.found
    assert "5e+12" in finding.found
    assert finding.allowed == "at most 1000000000"


def test_any_other_refusal_stays_a_fault_of_ours() -> None:
    with pytest.raises(ValidationError), products_in_range():
        TypeAdapter(Rps).validate_python("fast")


def test_what_is_in_range_passes() -> None:
    with products_in_range():
        assert TypeAdapter(Rps).validate_python("600 req/min") == 10.0
