"""A static inventory: pools and quotas from a YAML or JSON file, read again when it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import Field, ValidationError

from models.hardware import Pool
from models.observation import Finding, QuotaObservation
from models.value import Value
from planner.catalog import Catalog, load_catalog
from planner.clock import Clock
from planner.control.discovery.naming import Names
from planner.control.options import options_of
from planner.control.protocols import Inventory
from planner.errors import ConfigurationError, allowed_by
from planner.errors import Finding as InputFinding
from planner.importers.anchors import unfolds

__all__ = ["FileDiscovery", "FileOptions", "StaticInventory", "source"]

_MOST_BYTES: Final = 16 * 2**20
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FileOptions(Value):
    """Which file."""

    path: Path = Field(description="YAML or JSON with pools, as scenarios have them, and quotas")


class StaticInventory(Value):
    """What the file holds."""

    pools: tuple[Pool, ...] = Field(max_length=10_000, description="accelerators by type and place")
    quotas: tuple[QuotaObservation, ...] = Field((), max_length=10_000, description="namespace quotas")


class FileDiscovery:
    """Reads a file; one that was spoiled since leaves the last good inventory, and a finding.

    Args:
        path: of the file.
        catalog: knows accelerators by their aliases.

    Raises:
        ConfigurationError: the file cannot be read; lists everything that is wrong with it.
    """

    def __init__(self, path: Path, catalog: Catalog) -> None:
        self.path = path
        self._names = Names(catalog)
        self._stamp = _stamp(path)
        self._good = self._read()

    def discover(self, now_s: float) -> Inventory:
        """See :class:`planner.control.protocols.CapacityDiscovery`."""
        findings: tuple[Finding, ...] = ()
        stamp = _stamp(self.path)
        if stamp != self._stamp:
            try:
                self._good, self._stamp = self._read(), stamp
            except ConfigurationError as error:
                problem = " ".join(str(error).split())[:1000]
                findings = (Finding(subject=f"file {self.path}", problem=problem, remedy="the last good one counts until it is repaired"),)  # fmt: skip
        return Inventory(pools=self._good.pools, quotas=self._good.quotas, findings=findings)

    def _read(self) -> StaticInventory:
        try:
            found = StaticInventory.model_validate(_document(self.path))
        except ValidationError as cause:
            raise ConfigurationError.from_findings(
                InputFinding(
                    str(self.path),
                    None,
                    ".".join(map(str, fault["loc"])),
                    repr(fault["input"])[:100],
                    allowed_by(fault),
                )
                for fault in cause.errors(include_url=False)
            ) from None
        pools = tuple(each.but(accelerator=self._names.normal(each.accelerator)) for each in found.pools)
        twice = sorted(id_ for id_, uses in Counter(each.id for each in pools).items() if uses > 1)
        if twice:
            raise ConfigurationError.from_findings(
                InputFinding(
                    str(self.path),
                    None,
                    "pools",
                    f"the id {each!r} more than once",
                    "an id of its own for each",
                )
                for each in twice
            )
        return found.but(pools=pools)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _document(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise _wrong(path, f"more than {_MOST_BYTES:,} bytes")
        found = _parsed(text, path)
    except OSError as cause:
        raise _wrong(path, f"that it cannot be read: {cause.strerror}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as cause:
        raise _wrong(
            path, f"what is no YAML ({getattr(cause, 'problem', None) or type(cause).__name__})"
        ) from None
    if not isinstance(found, dict):
        raise _wrong(path, "no mapping")
    return found


def _parsed(text: bytes, path: Path) -> object:
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        if unfolds(node):
            raise _wrong(path, "anchors that unfold beyond a million values")
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _wrong(path: Path, found: str) -> ConfigurationError:
    return ConfigurationError.from_findings(
        [InputFinding(str(path), None, "", found, "a mapping with 'pools'")]
    )


def source(options: Mapping[str, Any], clock: Clock) -> FileDiscovery:
    """Make the discovery of these options; reads the file.

    Raises:
        ConfigurationError: lists everything that is wrong with options and file.
    """
    read = options_of(FileOptions, "file", options)
    return FileDiscovery(read.path, load_catalog())
