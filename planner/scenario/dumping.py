"""Scenario -> YAML in the long form, which loads to the same value."""

from __future__ import annotations

from typing import Any, Final

import yaml

from models.scenario import Scenario
from planner.scenario.scalars import FLOAT, INTEGER

__all__ = ["dump_scenario"]


_Dumper: Final[Any] = type("_Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})
"""Quotes every text that a reader of YAML 1.1 or 1.2 could take for a number; libyaml writes large fleets at once."""

_NUMBERS: Final = {"tag:yaml.org,2002:float": FLOAT, "tag:yaml.org,2002:int": INTEGER}
for _tag, _pattern in _NUMBERS.items():
    _Dumper.add_implicit_resolver(_tag, _pattern, list("-+.0123456789"))


def dump_scenario(scenario: Scenario) -> str:
    """The scenario as a YAML document with the field names of the models; what is a default is left out."""
    fields = scenario.model_dump(mode="json", exclude_defaults=True)
    return yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
