"""What differs between the inputs of two drafts, field by field, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from models.scenario import Scenario
from planner.wording import number, some_of

__all__ = ["input_changes"]

_SHORT: Final = 60
_NAMED: Final = 4
_CALLED: Final[Mapping[str, str]] = {"arrival_rps": "demand (req/s)"}
"""What people call a field where its name is ours."""

_WHOLE: Final = 2
"""Steps of a path that leads to no part of a list."""


def input_changes(before: Scenario, after: Scenario) -> tuple[str, ...]:
    """A sentence for every field that differs; one for all parts in which a field changed alike.

    A part is called by its id. Names and descriptions are left out.
    """
    found = [*_differences(_fields(before), _fields(after), ())]
    return tuple(_sentences(found))


Path = tuple[str, ...]
Difference = tuple[Path, object, object]
"""Path, value before and value after; :data:`_ABSENT` where there is none."""


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


_ABSENT = _Absent()


def _fields(scenario: Scenario) -> Mapping[str, Any]:
    return scenario.model_dump(mode="json", exclude={"name", "description"})


def _differences(before: Any, after: Any, path: Path) -> Iterator[Difference]:  # noqa: ANN401 - any JSON
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
        return
    if _are_parts(before) and _are_parts(after):
        yield from _differences(_by_id(before), _by_id(after), path)
        return
    yield path, before, after


def _are_parts(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(each, Mapping) and "id" in each for each in value)


def _by_id(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {part["id"]: part for part in parts}


def _sentences(found: Sequence[Difference]) -> Iterator[str]:
    groups: dict[tuple[str, str], list[Difference]] = {}
    for each in found:
        groups.setdefault((_kind(each[0]), _step(each)), []).append(each)
    for (kind, step), same in groups.items():
        if len(same) == 1 or not step:
            yield from (_sentence(each) for each in same)
        else:
            yield f"{kind} of {some_of(sorted({path[1] for path, _, _ in same}), _NAMED)}: {_together(same, step)}"


def _kind(path: Path) -> str:
    """The list that the part is in and the name of the field: what is on the way between them are ids."""
    return f"{path[0]}: {_CALLED.get(path[-1], path[-1])}"


def _step(difference: Difference) -> str:
    """What parts have in common that are told of together: the factor of a number, or the value before and after."""
    path, before, after = difference
    if len(path) <= _WHOLE:
        return ""
    if isinstance(before, int | float) and isinstance(after, int | float) and before:
        return f"× {number(after / before)}"
    return f"{_said(before)} → {_said(after)}"


def _together(same: Sequence[Difference], step: str) -> str:
    """The values where they are the same everywhere, else the factor."""
    values = {f"{_said(before)} → {_said(after)}" for _, before, after in same}
    return values.pop() if len(values) == 1 else step


def _sentence(difference: Difference) -> str:
    path, before, after = difference
    place = ".".join((*path[:-1], _CALLED.get(path[-1], path[-1])))
    if before is _ABSENT:
        return f"{place}: {_said(after)} added"
    if after is _ABSENT:
        return f"{place}: {_said(before)} taken away"
    return f"{place}: {_said(before)} → {_said(after)}"


def _said(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        return number(value, 6)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} {_said(each)}" for key, each in value.items() if key != "id")
        return _cut(inner or "an entry")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _cut(", ".join(_said(each) for each in value) or "nothing")
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
