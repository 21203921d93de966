"""What one person works on: named drafts of a scenario, each with what it was before and how to solve it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

from pydantic import Field, model_validator

from models.scenario import Scenario
from models.units import PositiveSeconds, Share
from models.value import Value

__all__ = ["DRAFTS_LIMIT", "Draft", "How", "Step", "StepKind", "Workspace"]

DRAFTS_LIMIT: Final = 20
"""Drafts side by side; more cannot be compared by eye."""

_UNDO_LIMIT: Final = 50
_STEPS_LIMIT: Final = 10
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


class StepKind(StrEnum):
    """What was done to the row of drafts."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"


class Step(Value):
    """One thing that was done to the row of drafts; edits of a draft are in the draft."""

    kind: StepKind = Field(description="what was done")
    name: str = Field(description="of the draft, after it")
    before: str = Field("", description="its name before, where it was renamed")
    draft: Draft | None = Field(None, description="the draft, where it was removed")
    place: int = Field(0, ge=0, description="where it stood")


class Workspace(Value):
    """All drafts of one person, and which one is open. There always is one."""

    drafts: tuple[Draft, ...] = Field(
        min_length=1, max_length=DRAFTS_LIMIT, description="in the order in which they were made"
    )
    opened: str = Field(description="name of the draft that pages show")
    how: How = Field(How(), description="how drafts are solved")
    steps: tuple[Step, ...] = Field((), description="what was done to the row of drafts, the latest last")

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
        name = self._free(draft.name)
        return self._stepped(
            Step(kind=StepKind.ADDED, name=name),
            drafts=(*self.drafts, draft.but(name=name)),
            opened=name,
        )

    def removed(self, name: str) -> Self:
        """The workspace without a draft; the last one stays."""
        place = next((place for place, each in enumerate(self.drafts) if each.name == name), None)
        if place is None or len(self.drafts) == 1:
            return self
        rest = self.drafts[:place] + self.drafts[place + 1 :]
        return self._stepped(
            Step(kind=StepKind.REMOVED, name=name, draft=self.drafts[place], place=place),
            drafts=rest,
            opened=rest[0].name if self.opened == name else self.opened,
        )

    def renamed(self, name: str, to: str) -> Self:
        """The workspace with a draft under another name, which is made unique; the same where it has that name."""
        to = " ".join(to.split())[:60]
        if not to or to == name or all(each.name != name for each in self.drafts):
            return self
        to = self._free(to)
        drafts = tuple(each.but(name=to) if each.name == name else each for each in self.drafts)
        step = Step(kind=StepKind.RENAMED, name=to, before=name)
        return self._stepped(step, drafts=drafts, opened=to if self.opened == name else self.opened)

    def taken_back(self) -> Self:
        """The workspace without the last step; where that would lose edits, a step that can be taken back itself."""
        if not self.steps:
            return self
        *steps, last = self.steps
        before = self.but(steps=tuple(steps))
        match last.kind:
            case StepKind.REMOVED if last.draft is not None and len(self.drafts) < DRAFTS_LIMIT:
                draft = last.draft.but(name=self._free(last.name))
                drafts = (*self.drafts[: last.place], draft, *self.drafts[last.place :])
                return before.but(drafts=drafts, opened=draft.name)
            case StepKind.RENAMED:
                return before.renamed(last.name, last.before).but(steps=tuple(steps))
            case StepKind.ADDED:
                without = before.removed(last.name)
                edited = any(each.name == last.name and each.past for each in self.drafts)
                return without if edited else without.but(steps=tuple(steps))
            case _:
                return self

    def _free(self, wanted: str) -> str:
        """The name, with a number where another draft has it."""
        taken = {each.name for each in self.drafts}
        name, number = wanted, 2
        while name in taken:
            name, number = f"{wanted[:55]} {number}", number + 1
        return name

    def _stepped(self, step: Step, *, drafts: tuple[Draft, ...], opened: str) -> Self:
        return self.but(drafts=drafts, opened=opened, steps=(*self.steps, step)[-_STEPS_LIMIT:])


def _remembered(past: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    kept: list[Scenario] = []
    services = 0
    for scenario in reversed(past[-_UNDO_LIMIT:]):
        services += len(scenario.services)
        if kept and services > _UNDO_SERVICES:
            break
        kept.append(scenario)
    return tuple(reversed(kept))
