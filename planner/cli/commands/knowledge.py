"""``catalog``, ``schema``, ``plugins`` and ``import``: what is known, what may be written, what is installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from planner.cli.asking import AT_HELP, VARIANT_FORM
from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note, out_console
from planner.errors import CatalogError, Finding, nearest

if TYPE_CHECKING:
    from planner.catalog import Catalog

__all__ = [
    "ImportOptions",
    "ListOptions",
    "Part",
    "PluginOptions",
    "SchemaOptions",
    "ShowOptions",
    "catalog_list",
    "catalog_show",
    "import_aiconfigurator",
    "plugins",
    "schema",
]


class _Sources(TypedDict):
    sources: Mapping[str, str]
    meanings: Mapping[str, str]


class Part(StrEnum):
    """Parts of the catalog."""

    ACCELERATORS = "accelerators"
    LLMS = "llms"
    PROFILES = "profiles"
    VARIANTS = "variants"


@dataclass(frozen=True, kw_only=True)
class ListOptions(Common):
    """Options of ``catalog list``."""

    part: Annotated[Part | None, typer.Argument(help="One part; default: all.", show_default=False)] = None
    scenario: Annotated[
        Path | None,
        typer.Option(
            "--scenario",
            metavar="FILE",
            show_default=False,
            help="List what this scenario knows too, and its variants.",
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Common):
    """Options of ``catalog show``."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"An accelerator, LLM or profile, by any name; a variant as {VARIANT_FORM}, or of --scenario "
            "as SERVICE/VARIANT.",
            show_default=False,
        ),
    ]
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="SHAPE", show_default=False, help=f"For a variant. {AT_HELP}"),
    ] = None
    scenario: Annotated[
        Path | None,
        typer.Option(
            "--scenario",
            metavar="FILE",
            show_default=False,
            help="Scenario whose variants and profiles are known.",
        ),
    ] = None
    sources: Annotated[
        str | None,
        typer.Option(
            "--sources", metavar="NAMES", show_default=False,
            help="Who is asked, in this order, e.g. measured,queueing,roofline (default) or aiconfigurator.",
        ),
    ] = None  # fmt: skip
    profiles: Annotated[
        list[Path] | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            show_default=False,
            help="Profile beside the catalog's; may be repeated.",
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False


@dataclass(frozen=True, kw_only=True)
class SchemaOptions(Common):
    """Options of ``schema``."""

    kind: Annotated[str, typer.Argument(metavar="KIND", help="E.g. scenario.", show_default=False)]


@dataclass(frozen=True, kw_only=True)
class PluginOptions(Common):
    """Options of ``plugins``."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions(Common):
    """Options of ``import aiconfigurator``."""

    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Measured tables (CSV).", show_default=False)
    ]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="PROFILE", help="Profile table to write (CSV).", show_default=False
        ),
    ]
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False
    source: Annotated[str, typer.Option(help="Source code that each row shall carry.")] = "P1"


def catalog_list(options: ListOptions) -> ExitCode:
    """List accelerators, LLMs and profiles that are known."""
    from planner.cli.commands.variant import list_json, list_variants, scenario_catalog
    from planner.cli.screen.catalog import show_accelerators, show_llms, show_profiles

    if options.part is Part.VARIANTS and options.scenario is None:
        finding = Finding(
            "", None, "variants", "no scenario", "--scenario FILE: variants belong to a scenario"
        )
        raise CatalogError.from_findings([finding])
    shows = {Part.ACCELERATORS: show_accelerators, Part.LLMS: show_llms, Part.PROFILES: show_profiles}
    catalog, scenario = scenario_catalog(options.scenario)
    if options.as_json:
        sys.stdout.write(list_json(catalog, scenario, part=options.part))
        return ExitCode.DONE
    console = out_console()
    for part, show in shows.items():
        if options.part in {None, part}:
            show(console, catalog)
    if scenario is not None and options.part in {None, Part.VARIANTS}:
        list_variants(console, scenario)
    return ExitCode.DONE


def catalog_show(options: ShowOptions) -> ExitCode:
    """Show one entry: every figure with its unit and its source."""
    from planner.catalog.catalog import names_of
    from planner.cli.commands.variant import entry_json, is_variant, scenario_catalog, show_variant
    from planner.cli.screen.catalog import show_entry, show_profile

    if is_variant(options):
        return show_variant(options)
    catalog, console, wanted = (
        scenario_catalog(None, options.profiles)[0],
        out_console(),
        options.name.casefold(),
    )
    if options.as_json:
        sys.stdout.write(entry_json(catalog, options.name))
        return ExitCode.DONE
    accelerators, llms = names_of(catalog.accelerators), names_of(catalog.llms)
    if wanted in accelerators:
        accelerator = catalog.accelerators[accelerators[wanted]]
        show_entry(console, accelerator, **_sources(catalog, f"accelerators/{accelerator.id}"))
    elif wanted in llms:
        llm = catalog.llms[llms[wanted]]
        show_entry(console, llm, **_sources(catalog, f"llms/{llm.id}"))
    elif options.name in catalog.profiles:
        show_profile(console, options.name, catalog.profiles[options.name])
    else:
        close = nearest(options.name, [*accelerators, *llms, *catalog.profiles])
        suggestion = None if close is None else accelerators.get(close) or llms.get(close) or close
        allowed = "a name that 'fleetplan catalog list' shows"
        raise CatalogError.from_findings([Finding("", None, "NAME", repr(options.name), allowed, suggestion)])
    return ExitCode.DONE


def schema(options: SchemaOptions) -> ExitCode:
    """Print the JSON schema of a kind of document."""
    from planner.scenario import schema as schema_of

    sys.stdout.write(json.dumps(schema_of(options.kind), indent=2, sort_keys=True) + "\n")
    return ExitCode.DONE


def plugins(options: PluginOptions) -> ExitCode:
    """List what can be chosen by name, and where it is from."""
    from planner.cli.screen.layout import Column, table
    from planner.control.actuators import ACTUATORS
    from planner.control.collectors import METRICS_SOURCES
    from planner.control.deciding import POLICIES
    from planner.control.discovery import CAPACITY_DISCOVERIES
    from planner.optimization import SOLVERS
    from planner.performance import SOURCES

    del options
    listed = table([Column(header, right=False) for header in ("kind", "name", "from", "loads")])
    for registry in (SOLVERS, SOURCES, METRICS_SOURCES, CAPACITY_DISCOVERIES, POLICIES, ACTUATORS):
        for plugin in registry.plugins():
            listed.add_row(registry.kind, plugin.name, plugin.source, plugin.target)
    out_console().print(listed)
    return ExitCode.DONE


def import_aiconfigurator(options: ImportOptions) -> ExitCode:
    """Turn AIConfigurator's measured tables into a profile table."""
    from planner.importers.aiconfigurator import import_aiconfigurator as read
    from planner.performance.profile import COLUMNS, write_profile
    from planner.wording import quantity

    output = Output(
        path=options.output,
        ours=begins_with(",".join(COLUMNS)),
        inputs=tuple(options.paths),
        force=options.force,
    )
    asked = Gathering()
    asked.attempt(output.check)
    catalog = _catalog()
    tables = [
        asked.attempt(lambda path=path: read(path, catalog, source=options.source))  # type: ignore[misc]
        for path in options.paths
    ]
    asked.check()
    imported = [made(table) for table in tables]
    points = [point for table in imported for point in table.points]
    with output.at_once() as temporary:
        write_profile(points, temporary)
    for path, table in zip(options.paths, imported, strict=True):
        left_out = ", ".join(f"{count} {reason}".replace("_", " ") for reason, count in table.skipped.items())
        note(
            f"{path}: {quantity(len(table.points), 'point')}"
            + (f"; rows left out: {left_out}" if left_out else "")
        )
    if not output.on_stdout:
        out_console().print(f"{quantity(len(points), 'point')} written to {options.output}")
    return ExitCode.DONE


def _catalog() -> Catalog:
    from planner.planning import known_catalog

    return known_catalog()


def _sources(catalog: Catalog, key: str) -> _Sources:
    """Codes of the figures of an entry, and what codes stand for."""
    from planner.catalog import source_descriptions
    from planner.settings import load_settings

    return {
        "sources": catalog.sources.get(key, {}),
        "meanings": source_descriptions(load_settings().catalog_dir),
    }
