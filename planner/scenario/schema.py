"""JSON schemas of what goes in and comes out."""

from __future__ import annotations

from typing import Any, Final

from models import SCHEMA
from models.plan import Plan
from models.problem import Problem
from models.report import Report
from models.scenario import Scenario
from models.solution import Solution
from models.value import Value
from planner.errors import ConfigurationError, Finding, nearest

__all__ = ["KINDS", "schema"]

KINDS: Final[dict[str, type[Value]]] = {
    "scenario": Scenario,
    "problem": Problem,
    "solution": Solution,
    "plan": Plan,
    "report": Report,
}


def schema(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind of value; of a scenario in its long form.

    Raises:
        ConfigurationError: there is no such kind.
    """
    if kind not in KINDS:
        finding = Finding("", None, "", f"unknown kind {kind!r}", ", ".join(KINDS), nearest(kind, KINDS))
        raise ConfigurationError.from_findings([finding])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{SCHEMA}/{kind}",
    } | KINDS[kind].model_json_schema(mode="validation" if kind == "scenario" else "serialization")
