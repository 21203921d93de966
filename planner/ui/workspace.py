"""What one person works on: named drafts of a scenario, each with what it was before and how to solve it."""

from __future__ import annotations

from typing import Final, Self

from pydantic import Field, model_validator

from models.scenario import Scenario
from models.units import PositiveSeconds, Share
from models.value import Value

__all__ = ["DRAFTS_LIMIT", "Draft", "How", "Workspace"]

DRAFTS_LIMIT: Final = 20
"""Drafts side by side; more cannot be compared by eye."""

_UNDO_LIMIT: Final = 50
_UNDO_SERVICES: Final = 5_000
"""Services that all remembered scenarios hold together: a large scenario remembers fewer steps."""


class How(Value):
    """How a scenario is solved."""

    solver: str = Field("auto", description="name of a solver")
    time_limit_s: PositiveSeconds = Field(30.0, le=3600, description="wall time for one answer, s")
    gap: Share = Field(1e-4, description="relative gap at which a level counts as optimal")
    allow_unserved: bool = Field(False, description="demand is an objective for every service, not a promise")


class Draft(Value):
    """One named draft: the scenario as it is, and the steps back and forth."""

    name: str = Field(min_length=1, max_length=60, description="what people call it")
    scenario: Scenario = Field(description="as it is now")
    past: tuple[Scenario, ...] = Field((), description="what undo goes back to, the latest last")
    future: tuple[Scenario, ...] = Field((), description="what redo goes forward to, the next last")

    def edited(self, scenario: Scenario) -> Self:
        """The draft with another scenario; the one before can be had back."""
        if scenario == self.scenario:
            return self
        return self.but(scenario=scenario, past=_remembered((*self.past, self.scenario)), future=())

    def undone(self) -> Self:
        """One step back; the same draft where there is none."""
        if not self.past:
            return self
        *past, scenario = self.past
        return self.but(scenario=scenario, past=tuple(past), future=(*self.future, self.scenario))

    def redone(self) -> Self:
        """One step forward again; the same draft where there is none."""
        if not self.future:
            return self
        *future, scenario = self.future
        return self.but(scenario=scenario, past=(*self.past, self.scenario), future=tuple(future))


class Workspace(Value):
    """All drafts of one person, and which one is open. There always is one."""

    drafts: tuple[Draft, ...] = Field(
        min_length=1, max_length=DRAFTS_LIMIT, description="in the order in which they were made"
    )
    opened: str = Field(description="name of the draft that pages show")
    how: How = Field(How(), description="how drafts are solved")

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [draft.name for draft in self.drafts]
        if len({*names}) != len(names):
            raise ValueError("two drafts have one name")
        if self.opened not in names:
            raise ValueError(f"found {self.opened!r}; allowed: {', '.join(names)}")
        return self

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """A workspace that holds one scenario."""
        draft = Draft(name=scenario.name[:60], scenario=scenario)
        return cls(drafts=(draft,), opened=draft.name)

    @property
    def draft(self) -> Draft:
        """The one that is open."""
        return next(draft for draft in self.drafts if draft.name == self.opened)

    def put(self, draft: Draft) -> Self:
        """The workspace with the open draft in its new state."""
        drafts = tuple(draft if each.name == self.opened else each for each in self.drafts)
        return self.but(drafts=drafts, opened=draft.name)

    def open(self, name: str) -> Self:
        """The workspace with another draft open."""
        return self.but(opened=name)

    def added(self, draft: Draft) -> Self:
        """The workspace with one more draft, which is open; its name is made unique."""
        taken = {each.name for each in self.drafts}
        name, number = draft.name, 2
        while name in taken:
            name, number = f"{draft.name[:55]} {number}", number + 1
        return self.but(drafts=(*self.drafts, draft.but(name=name)), opened=name)

    def removed(self, name: str) -> Self:
        """The workspace without a draft; the last one stays."""
        rest = tuple(each for each in self.drafts if each.name != name)
        if not rest:
            return self
        return self.but(drafts=rest, opened=rest[0].name if self.opened == name else self.opened)


def _remembered(past: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    kept: list[Scenario] = []
    services = 0
    for scenario in reversed(past[-_UNDO_LIMIT:]):
        services += len(scenario.services)
        if kept and services > _UNDO_SERVICES:
            break
        kept.append(scenario)
    return tuple(reversed(kept))
