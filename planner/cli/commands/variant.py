"""``catalog show VARIANT`` and what ``catalog list`` and ``show`` say of a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from planner.cli.asking import VARIANT_FORM, parse_at, parse_variant
from planner.cli.edge import ExitCode
from planner.cli.json_output import as_json
from planner.cli.terminal import out_console
from planner.errors import CatalogError, ConfigurationError, Finding, allowed_by, nearest

if TYPE_CHECKING:
    from rich.console import Console

    from models.performance import PerformanceChoice, RatingQuestion
    from models.scenario import Scenario
    from models.variant import Variant
    from models.workload import Service
    from planner.catalog import Catalog

__all__ = ["entry_json", "is_variant", "list_json", "list_variants", "scenario_catalog", "show_variant"]

_USUAL: Final = ("measured", "queueing", "roofline")


class _Asked(Protocol):
    """The options of ``catalog show`` that are about a variant."""

    @property
    def name(self) -> str: ...
    @property
    def at(self) -> str | None: ...
    @property
    def scenario(self) -> Path | None: ...
    @property
    def sources(self) -> str | None: ...
    @property
    def profiles(self) -> list[Path] | None: ...
    @property
    def as_json(self) -> bool: ...


def scenario_catalog(
    path: Path | None, profiles: list[Path] | None = None
) -> tuple[Catalog, Scenario | None]:
    """What is known, with a scenario's own entries and profiles where one is named; and that scenario.

    Raises:
        ConfigurationError: a file is wrong.
    """
    from planner.door import load_scenario
    from planner.picturing import scenario_catalog as catalog_of

    scenario = None if path is None else load_scenario(path)
    return catalog_of(scenario, [str(each) for each in profiles or ()]), scenario


def is_variant(options: _Asked) -> bool:
    """Whether a variant is asked for: by its form, by a shape, or by a scenario."""
    return "@" in options.name or options.at is not None or options.scenario is not None


def show_variant(options: _Asked) -> ExitCode:
    """Print all that is known of a variant at a request shape."""
    from planner.picturing import look_at

    catalog, scenario = scenario_catalog(options.scenario, options.profiles)
    picture = look_at(_question(options, catalog, scenario), catalog, _choice(options, scenario))
    if options.as_json:
        sys.stdout.write(as_json(picture.model_dump(mode="json")))
    else:
        from planner.cli.screen.variant import show_picture

        show_picture(out_console(), picture)
    return ExitCode.DONE


def _choice(options: _Asked, scenario: Scenario | None) -> PerformanceChoice:
    """Sources: as the option says, else as the scenario does where it chose, else the usual ones."""
    from models.performance import PerformanceChoice

    base = PerformanceChoice() if scenario is None else scenario.performance
    if options.sources is not None:
        names = tuple(name.strip() for name in options.sources.split(",") if name.strip())
        if not names or len(set(names)) < len(names):
            raise ConfigurationError.from_findings(
                [Finding("", None, "--sources", repr(options.sources), "names of sources, each once")]
            )
        return base.but(sources=names)
    return base if scenario is not None and base != PerformanceChoice() else base.but(sources=_USUAL)


def _question(options: _Asked, catalog: Catalog, scenario: Scenario | None) -> RatingQuestion:
    from models.performance import RatingQuestion
    from models.saturation import SaturationThresholds
    from models.workload import Slo
    from planner.picturing import busiest, question_of

    service, variant = _named(options, scenario)
    if options.at is None:
        if service is None:
            allowed = "INPUT,OUTPUT and promises: --at 4096,1024,ttft=3s,itl=50ms"
            raise ConfigurationError.from_findings([Finding("", None, "--at", "nothing", allowed)])
        return question_of(service, variant, catalog, bucket=busiest(service))
    inputs, outputs, slo = parse_at(options.at)
    if service is not None:
        shape = busiest(service).but(input_tokens=inputs, output_tokens=outputs, cached_share=0.0)
        asked = question_of(service, variant, catalog, bucket=shape)
        return asked if slo == Slo() else asked.but(slo=slo)
    return RatingQuestion(
        llm=catalog.llm(parse_variant(options.name)[0]),
        accelerator=catalog.accelerator(variant.accelerator),
        variant=variant,
        input_tokens=inputs,
        output_tokens=outputs,
        slo=slo,
        thresholds=SaturationThresholds(),
    )


def _named(options: _Asked, scenario: Scenario | None) -> tuple[Service | None, Variant]:
    """The variant that is meant, and its service where it is one of a scenario."""
    from pydantic import ValidationError

    from models.variant import Variant as Noun

    if "@" in options.name:
        try:
            return None, Noun.model_validate(parse_variant(options.name)[2])
        except ValidationError as cause:
            findings = [
                Finding("", None, "NAME", repr(e["input"]), allowed_by(e))
                for e in cause.errors(include_url=False)
            ]
            raise ConfigurationError.from_findings(findings) from cause
    known = (
        {} if scenario is None else {f"{s.id}/{v.id}": (s, v) for s in scenario.services for v in s.variants}
    )
    alone = [key for key in known if key.rpartition("/")[2] == options.name]
    key = options.name if options.name in known else alone[0] if len(alone) == 1 else None
    if key is not None:
        return known[key]
    found = f"{options.name!r}, which {len(alone)} services have" if alone else repr(options.name)
    allowed = VARIANT_FORM if scenario is None else f"{', '.join(known)}; or {VARIANT_FORM}"
    suggestion = (
        alone[0] if alone else nearest(options.name, [*known, *(each.rpartition("/")[2] for each in known)])
    )
    raise CatalogError.from_findings([Finding("", None, "NAME", found, allowed, suggestion)])


def list_variants(console: Console, scenario: Scenario) -> None:
    """A line per variant of a scenario."""
    from planner.cli.screen.variant import show_variants

    show_variants(console, scenario)


def list_json(catalog: Catalog, scenario: Scenario | None, *, part: str | None) -> str:
    """Everything, or one part, as JSON."""
    everything: dict[str, Any] = {
        "accelerators": [each.model_dump(mode="json") for each in catalog.accelerators.values()],
        "llms": [each.model_dump(mode="json") for each in catalog.llms.values()],
        "profiles": {name: len(rows) for name, rows in catalog.profiles.items()},
        "queueing": [each.model_dump(mode="json") for each in catalog.queueing],
    }
    if scenario is not None:
        everything["variants"] = [
            {"service": service.id, "llm": service.llm} | variant.model_dump(mode="json")
            for service in scenario.services
            for variant in service.variants
        ]
    return as_json(everything if part is None else {part: everything[part]})


def entry_json(catalog: Catalog, name: str) -> str:
    """One entry as JSON.

    Raises:
        CatalogError: there is none of that name; says the nearest.
    """
    from planner.catalog.catalog import names_of

    accelerators, llms = names_of(catalog.accelerators), names_of(catalog.llms)
    folded = name.casefold()
    if folded in accelerators:
        return as_json(catalog.accelerators[accelerators[folded]].model_dump(mode="json"))
    if folded in llms:
        return as_json(catalog.llms[llms[folded]].model_dump(mode="json"))
    if name in catalog.profiles:
        return as_json({name: [row.model_dump(mode="json") for row in catalog.profiles[name]]})
    close = nearest(name, [*accelerators, *llms, *catalog.profiles])
    raise CatalogError.from_findings(
        [Finding("", None, "NAME", repr(name), "a name that 'fleetplan catalog list' shows", close)]
    )
