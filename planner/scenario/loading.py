"""Load a scenario: read, override, write out, check, validate; everything that is wrong in one error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

from models.scenario import Scenario
from planner.catalog import Catalog, load_catalog
from planner.errors import ConfigurationError, InternalError
from planner.scenario.consistency import check_consistency
from planner.scenario.files import Source, read_document, read_text
from planner.scenario.occupancy import check_running_fits
from planner.scenario.overrides import apply_overrides
from planner.scenario.plain import entry_of
from planner.scenario.profiles import locate_profiles
from planner.scenario.references import (
    check_performance_names,
    check_references,
    resolve_catalog_names,
)
from planner.scenario.shape import Scope
from planner.scenario.shapes import SCENARIO
from planner.scenario.tree import ANY, Complaints, Entry, below
from planner.scenario.validating import validate
from planner.scenario.writing_out import write_out

__all__ = ["check_scenario", "load_scenario", "parse_scenario"]

_WHOLE_FLEET: Final = "fleet"


def load_scenario(
    path: str | PathLike[str], *, overrides: Iterable[str] = (), catalog: Catalog | None = None
) -> Scenario:
    """Load a scenario file.

    Args:
        path: the file; relative includes are looked for beside it.
        overrides: ``PATH=VALUE`` each, applied before anything is checked.
        catalog: accelerators and LLMs that may be named; None: the one that ships.

    Raises:
        ConfigurationError: something is wrong; lists all of it.
    """
    complaints = Complaints()
    file = Path(path)
    text = read_text(file, label=str(path), complaints=complaints)
    if text is None:
        raise ConfigurationError.from_findings(complaints.findings)
    resolved = file.resolve()
    source = Source(str(path), resolved, resolved.parent, (resolved,))
    return _scenario(text, source, complaints, overrides=overrides, catalog=catalog)


def parse_scenario(
    text: str,
    *,
    name: str = "scenario",
    base_folder: Path | None = None,
    overrides: Iterable[str] = (),
    catalog: Catalog | None = None,
    confined: bool = False,
) -> Scenario:
    """Load a scenario from a text.

    Args:
        text: what a scenario file holds.
        name: stands for the file in findings; the name of the scenario if it has none.
        base_folder: folder of relative includes; None: there are none.
        overrides: ``PATH=VALUE`` each, applied before anything is checked.
        catalog: accelerators and LLMs that may be named; None: the one that ships.
        confined: profiles, as includes, must be files in ``base_folder``: the text is a stranger's.

    Raises:
        ConfigurationError: something is wrong; lists all of it.
    """
    root = base_folder.resolve() if base_folder is not None else None
    path = root / "scenario.yaml" if root is not None else None
    source = Source(name, path, root, confined=confined)
    return _scenario(text, source, Complaints(), overrides=overrides, catalog=catalog)


def check_scenario(
    fields: Mapping[str, Any], *, overrides: Iterable[str] = (), catalog: Catalog | None = None
) -> Scenario:
    """The scenario of bare values with the field names of the models, held to all that a file is held to.

    Args:
        fields: as :meth:`Scenario.model_dump` gives them without defaults, edited.
        overrides: ``PATH=VALUE`` each, as for a file; what they say may be in the short form.
        catalog: accelerators and LLMs that may be named; None: the one that ships.

    Raises:
        ConfigurationError: something is wrong; lists all of it, each with its path.
    """
    complaints, document, changes = Complaints(), entry_of(fields), tuple(overrides)
    if changes:
        document = _written_out(apply_overrides(document, changes, complaints), complaints)
    return _judged(document, complaints, catalog=catalog)


def _scenario(
    text: str, source: Source, complaints: Complaints, *, overrides: Iterable[str], catalog: Catalog | None
) -> Scenario:
    document = read_document(text, source, complaints)
    if document is None:
        raise ConfigurationError.from_findings(complaints.in_order())
    document = apply_overrides(document, overrides, complaints)
    document = locate_profiles(_written_out(document, complaints), source, complaints)
    return _judged(_named(document, Path(source.label).stem), complaints, catalog=catalog)


def _judged(document: Entry, complaints: Complaints, *, catalog: Catalog | None) -> Scenario:
    known = catalog if catalog is not None else load_catalog()
    document = resolve_catalog_names(document, known, complaints)
    check_references(document, complaints)
    check_performance_names(document, known, complaints)
    check_consistency(document, complaints)
    scenario = validate(document, complaints)
    if scenario is not None:
        check_running_fits(scenario, document, complaints)
    if complaints.findings:
        raise ConfigurationError.from_findings(complaints.in_order())
    if scenario is None:
        raise InternalError("a scenario was refused without a finding")
    return scenario


def _written_out(document: Entry, complaints: Complaints) -> Entry:
    scope = Scope(complaints, services=_service_ids(document), defaults=_defaults(document, complaints))
    written = write_out(document, SCENARIO, scope)
    written = written.but({key: entry for key, entry in written.fields.items() if key != "defaults"})
    return _whole_fleet(written)


def _defaults(document: Entry, complaints: Complaints) -> dict[str, Entry]:
    entry = document.fields.get("defaults")
    if entry is None or entry.value is None:
        return {}
    if not isinstance(entry.value, dict):
        complaints.about(entry, entry.phrase(), allowed="a mapping with service, variant and pool")
    return {key: item for key, item in entry.fields.items() if isinstance(item.value, dict)}


def _service_ids(document: Entry) -> frozenset[str]:
    services = document.fields.get("services")
    if services is None:
        return frozenset()
    return frozenset(services.fields) | {
        name for item in services.items if (name := item.named("id")) is not None
    }


def _whole_fleet(document: Entry) -> Entry:
    """A power cap without a name is one over every pool."""
    domains = list(below(document, "limits", "power", ANY))
    if [domain.named("id") for domain in domains] != [_WHOLE_FLEET] or "pools" in domains[0].fields:
        return document
    pools = [pool for pool in below(document, "pools", ANY) if pool.named("id") is not None]
    if any(pool.named("power_domain") == _WHOLE_FLEET for pool in pools):
        return document
    limits, power = document.fields["limits"], document.fields["limits"].fields["power"]
    every = domains[0].but(tuple(pool.but(pool.named("id"), text=pool.named("id")) for pool in pools))
    domain = domains[0].but({**domains[0].fields, "pools": every})
    return document.but(
        {**document.fields, "limits": limits.but({**limits.fields, "power": power.but((domain,))})}
    )


def _named(document: Entry, name: str) -> Entry:
    entry = document.fields.get("name")
    if entry is not None and entry.value is not None:
        return document
    return document.but({**document.fields, "name": document.but(name or "scenario", text=name)})
