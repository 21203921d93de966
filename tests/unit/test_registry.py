"""Names lead to factories; a plug-in is read only when it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, distribution

import pytest

from planner.errors import ConfigurationError
from planner.registry import EntryPointSource, Registry, installed_entry_points

BUILT_IN = {"join": "posixpath:join", "split": "posixpath:split"}


def a_plugin(name: str, target: str) -> EntryPoint:
    return EntryPoint(name, target, "fleetplan.path")


def of(*points: EntryPoint) -> EntryPointSource:
    return lambda group: [point for point in points if point.group == group]


def never(group: str) -> Iterable[EntryPoint]:
    raise AssertionError(f"read the entry points of {group}")


def a_registry(source: EntryPointSource) -> Registry[object]:
    return Registry("path", BUILT_IN, source=source)


def test_a_built_in_name_is_loaded_without_a_look_at_plug_ins() -> None:
    import posixpath

    assert a_registry(never).get("join") is posixpath.join
    assert "join" in a_registry(never)


def test_a_plug_in_is_found_by_its_entry_point() -> None:
    import ntpath

    registry = a_registry(of(a_plugin("windows", "ntpath:join")))
    assert registry.get("windows") is ntpath.join
    assert registry.names() == ("join", "split", "windows")
    assert [name in registry for name in ("join", "windows", "doors")] == [True, True, False]


def test_a_plug_in_may_name_an_attribute_of_an_attribute() -> None:
    assert a_registry(of(a_plugin("upper", "builtins:str.upper"))).get("upper") is str.upper


def test_a_plug_in_never_replaces_a_built_in_name() -> None:
    import posixpath

    registry = a_registry(of(a_plugin("join", "ntpath:join")))
    assert registry.get("join") is posixpath.join
    assert [plugin.target for plugin in registry.plugins()] == ["posixpath:join", "posixpath:split"]


def test_plugins_tell_where_each_name_is_from() -> None:
    registry = a_registry(of(a_plugin("windows", "ntpath:join")))
    sources = {plugin.name: plugin.source for plugin in registry.plugins()}
    assert sources == {"join": "fleetplan", "split": "fleetplan", "windows": "an unknown distribution"}


@pytest.mark.parametrize(
    ("name", "points", "said"),
    [
        ("jion", (), ["no path 'jion'", "join, split", "did you mean 'join'?"]),
        ("zzz", (), ["no path 'zzz'", "join, split"]),
        ("twice", ("ntpath:join", "ntpath:split"), ["claimed more than once", "ntpath:join", "ntpath:split"]),
        ("lost", ("no_such_package.x:y",), ["needs the Python package 'no_such_package'"]),
        ("typo", ("ntpath:jion",), ["'ntpath:jion'", "does not exist"]),
    ],
)
def test_an_unusable_name_is_explained(name: str, points: tuple[str, ...], said: list[str]) -> None:
    registry = a_registry(of(*(a_plugin(name, target) for target in points)))
    with pytest.raises(ConfigurationError) as caught:
        registry.get(name)
    assert [part for part in said if part not in str(caught.value)] == []


def test_a_name_that_resembles_nothing_gets_no_suggestion() -> None:
    with pytest.raises(ConfigurationError) as caught:
        a_registry(of()).get("zzz")
    assert "did you mean" not in str(caught.value)


def test_installed_entry_points_are_those_of_the_distributions() -> None:
    points = {point.name: point.value for point in installed_entry_points("console_scripts")}
    pytest_script = next(p for p in distribution("pytest").entry_points if p.name == "pytest")
    assert points["pytest"] == pytest_script.value
