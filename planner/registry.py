"""Plug-ins: a name, and the factory behind it, loaded when somebody asks for it.

What ships with fleetplan is given to a :class:`Registry` as ``name -> "module:attribute"``. What
others install is found through entry points of the group ``fleetplan.<kind>``, and only when a
name is asked for that is not ours: a broken plug-in cannot break a built-in name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from typing import Final, Generic, TypeVar, cast

from planner.errors import ConfigurationError, nearest

__all__ = ["EntryPointSource", "Plugin", "Registry", "installed_entry_points"]

Factory = TypeVar("Factory")
EntryPointSource = Callable[[str], Iterable[EntryPoint]]

BUILT_IN: Final = "fleetplan"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One name of a registry.

    Attributes:
        name: what users write.
        target: ``module:attribute`` of the factory.
        source: distribution that brings it; ``fleetplan`` for what is built in.
    """

    name: str
    target: str
    source: str


def installed_entry_points(group: str) -> Iterable[EntryPoint]:
    """The entry points of ``group`` of every distribution that is installed."""
    return entry_points(group=group)


class Registry(Generic[Factory]):
    """Factories of one kind by name.

    Args:
        kind: what they make, one word as users say it: ``"solver"``.
        built_in: ``module:attribute`` by name, of what ships with fleetplan.
        source: where the entry points of a group are from.
    """

    def __init__(
        self,
        kind: str,
        built_in: Mapping[str, str],
        *,
        source: EntryPointSource = installed_entry_points,
    ) -> None:
        self.kind = kind
        self._built_in = dict(built_in)
        self._source = source

    @property
    def group(self) -> str:
        """The entry-point group that plug-ins of this kind register in."""
        return f"fleetplan.{self.kind}"

    def plugins(self) -> tuple[Plugin, ...]:
        """Every name with its origin, sorted by name; a plug-in under one of our names is left out."""
        ours = [Plugin(name, target, BUILT_IN) for name, target in self._built_in.items()]
        theirs = [
            Plugin(point.name, point.value, _distribution(point))
            for point in self._source(self.group)
            if point.name not in self._built_in
        ]
        return tuple(sorted([*ours, *theirs], key=lambda plugin: (plugin.name, plugin.source, plugin.target)))

    def __contains__(self, name: str) -> bool:
        """Whether :meth:`get` knows a name; what is installed is looked through only for one that is not ours."""
        return name in self._built_in or name in self.names()

    def names(self) -> tuple[str, ...]:
        """Every name that :meth:`get` knows, sorted."""
        return tuple(sorted({plugin.name for plugin in self.plugins()}))

    def get(self, name: str) -> Factory:
        """Load the factory behind a name.

        Raises:
            ConfigurationError: the name is unknown (says the nearest one), two distributions claim
                it, or what it needs is not installed.
        """
        target = self._built_in.get(name)
        return self._load(self._find(name) if target is None else Plugin(name, target, BUILT_IN))

    def _find(self, name: str) -> Plugin:
        known = self.plugins()
        matches = [plugin for plugin in known if plugin.name == name]
        if not matches:
            raise ConfigurationError(_unknown(self.kind, name, sorted({plugin.name for plugin in known})))
        if len(matches) > 1:
            claims = ", ".join(f"{plugin.source} ({plugin.target})" for plugin in matches)
            raise ConfigurationError(
                f"{self.kind} {name!r} is claimed more than once: {claims}; uninstall one"
            )
        return matches[0]

    def _load(self, plugin: Plugin) -> Factory:
        point = EntryPoint(plugin.name, plugin.target, self.group)
        try:
            module = import_module(point.module)
        except ModuleNotFoundError as cause:
            raise ConfigurationError(
                f"{self.kind} {plugin.name!r} needs the Python package {cause.name!r}, which is not installed"
            ) from cause
        try:
            return cast("Factory", attrgetter(point.attr)(module))
        except AttributeError as cause:
            raise ConfigurationError(
                f"{self.kind} {plugin.name!r} of {plugin.source} names {plugin.target!r}, which does not exist"
            ) from cause


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    close = nearest(name, known)
    hint = f"; did you mean {close!r}?" if close is not None else ""
    return f"there is no {kind} {name!r}; there are: {', '.join(known) or 'none'}{hint}"


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"
