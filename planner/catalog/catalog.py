"""What a loaded catalog answers: an accelerator, an LLM or a profile, by id or by any other name it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from models.hardware import Accelerator
from models.llm import Llm
from models.performance import MeasuredPoint
from models.queueing_profile import QueueingProfile
from planner.errors import CatalogError, Finding, nearest

__all__ = ["Catalog", "names_of"]

Entry = TypeVar("Entry", Accelerator, Llm)


def names_of(entries: Mapping[str, Entry]) -> dict[str, str]:
    """Id by every name of every entry, folded: ids first, so that an id is never shadowed by an alias."""
    names: dict[str, str] = {}
    for entry in entries.values():
        for alias in entry.aliases:
            names.setdefault(alias.casefold(), entry.id)
    return names | {entry.id.casefold(): entry.id for entry in entries.values()}


@dataclass(frozen=True, slots=True)
class Catalog:
    """Accelerators, LLMs and profile tables.

    Attributes:
        accelerators: by id.
        llms: by id.
        profiles: measured points by name of the table.
        queueing: fitted queueing parameters, with what they are known for.
        sources: source code by field, by ``accelerators/ID`` or ``llms/ID``; a figure from the user's own
            file may have none.
    """

    accelerators: Mapping[str, Accelerator]
    llms: Mapping[str, Llm]
    profiles: Mapping[str, tuple[MeasuredPoint, ...]]
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    queueing: tuple[QueueingProfile, ...] = ()
    _accelerator_ids: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _llm_ids: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_accelerator_ids", names_of(self.accelerators))
        object.__setattr__(self, "_llm_ids", names_of(self.llms))

    def accelerator(self, name: str) -> Accelerator:
        """The accelerator of that id or alias; case does not count.

        Raises:
            CatalogError: there is none; names the nearest.
        """
        found = self.find_accelerator(name)
        if found is None:
            raise _unknown("accelerator", name, ids=self.accelerators, names=self._accelerator_ids)
        return found

    def find_accelerator(self, name: str) -> Accelerator | None:
        """As :meth:`accelerator`; None: there is none. It looks for no nearest one, which takes far longer."""
        found = self._accelerator_ids.get(name.casefold())
        return None if found is None else self.accelerators[found]

    def llm(self, name: str) -> Llm:
        """The LLM of that id or alias; case does not count.

        Raises:
            CatalogError: there is none; names the nearest.
        """
        found = self.find_llm(name)
        if found is None:
            raise _unknown("llm", name, ids=self.llms, names=self._llm_ids)
        return found

    def find_llm(self, name: str) -> Llm | None:
        """As :meth:`llm`; None: there is none. It looks for no nearest one, which takes far longer."""
        found = self._llm_ids.get(name.casefold())
        return None if found is None else self.llms[found]

    def profile(self, name: str) -> tuple[MeasuredPoint, ...]:
        """The profile table of that name.

        Raises:
            CatalogError: there is none; names the nearest.
        """
        if name not in self.profiles:
            raise _unknown("profile", name, ids=self.profiles, names={key: key for key in self.profiles})
        return self.profiles[name]


def _unknown(kind: str, name: str, *, ids: Mapping[str, object], names: Mapping[str, str]) -> CatalogError:
    close = nearest(name, names)
    suggestion = None if close is None else names[close]
    finding = Finding("", None, kind, repr(name), ", ".join(ids) or "nothing: there is none", suggestion)
    return CatalogError(f"the catalog has no {kind} {name!r}", findings=[finding])
