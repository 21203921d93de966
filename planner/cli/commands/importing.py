"""``import FORMAT``: files of other tools into catalog entries and scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
import yaml

from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note, out_console
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.llm import Llm
    from planner.importers.rate_grids import Traffic
    from planner.importers.vllm import ImportedVariant

__all__ = [
    "AibrixOptions",
    "HuggingfaceOptions",
    "MelangeOptions",
    "VllmOptions",
    "import_aibrix",
    "import_huggingface",
    "import_melange",
    "import_vllm",
    "put",
]

_MARK: Final = "# Imported by fleetplan"
_MOST_TOKENS: Final = 10**8
_MOST_RPS: Final = 1e9


@dataclass(frozen=True, kw_only=True)
class HuggingfaceOptions(Common):
    """Options of ``import huggingface``."""

    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="config.json, or the folder that holds it.", show_default=False),
    ]
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="YAML with LLM entries.", show_default=False),
    ]
    name: Annotated[
        str | None, typer.Option(help="Name of the entry; default: as the file or folder says.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


@dataclass(frozen=True, kw_only=True)
class _GridOptions(Common):
    """What files with rates do not say."""

    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="JSON files.", show_default=False)]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="SCENARIO", help="Scenario to write (YAML).", show_default=False
        ),
    ]
    llm: Annotated[str, typer.Option(help="LLM that was measured, by a name of the catalog.")]
    accelerator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GPU=NAME", help="Catalog name of a GPU type of the file; repeatable.", show_default=False
        ),
    ] = None
    service: Annotated[str, typer.Option(help="Name of the service.")] = "imported"
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


@dataclass(frozen=True, kw_only=True)
class MelangeOptions(_GridOptions):
    """Options of ``import melange``."""

    inputs: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Input length of each row; default: as published.")
    ] = None
    outputs: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Output length of each column; default: as published."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AibrixOptions(_GridOptions):
    """Options of ``import aibrix``."""

    traffic: Annotated[
        list[str],
        typer.Option(
            metavar="INxOUT=RATE",
            help="Input x output tokens = req/s, e.g. 512x128=4; repeatable.",
            show_default=False,
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class VllmOptions(Common):
    """Options of ``import vllm``."""

    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Shell text, or YAML with Kubernetes objects or pod templates.",
            show_default=False,
        ),
    ]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="SCENARIO", help="Scenario to write (YAML).", show_default=False
        ),
    ]
    accelerator: Annotated[
        str | None,
        typer.Option(
            help="Accelerator, by a name of the catalog, where the files name none.", show_default=False
        ),
    ] = None
    traffic: Annotated[
        str | None,
        typer.Option(
            metavar="INxOUT=RATE",
            help="Traffic of each service: input x output tokens = req/s. Without it only services and variants are written.",
            show_default=False,
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


def import_huggingface(options: HuggingfaceOptions) -> ExitCode:
    """Turn a local Hugging Face config.json into an LLM entry."""
    from planner.importers.huggingface import import_huggingface as read

    asked = Gathering()
    if options.name is not None and len(options.paths) > 1:
        asked.wrong("--name", options.name, "no name where there are several files")
    output = _output(options.output, options.paths, force=options.force)
    asked.attempt(output.check)
    read_files = [asked.attempt(lambda path=path: read(path, name=options.name)) for path in options.paths]  # type: ignore[misc]
    imported = [each for each in read_files if each is not None]
    names = [each.llm.id for each in imported]
    for again in sorted({name for name in names if names.count(name) > 1 and options.name is None}):
        asked.wrong("PATH", f"{again} twice", "files of different LLMs")
    asked.check()
    entries = {each.llm.id: _entry(each.llm) for each in imported}
    put(output, yaml.safe_dump({"llms": entries}, sort_keys=False, allow_unicode=True, width=110))
    for each in imported:
        for left_out in each.notes:
            note(f"{each.llm.id}: {left_out}")
    return ExitCode.DONE


def import_melange(options: MelangeOptions) -> ExitCode:
    """Turn Mélange's input into a scenario with routing by length."""
    from planner.importers.melange import import_melange as read
    from planner.importers.rate_grids import Named
    from planner.planning import known_catalog
    from planner.scenario import dump_scenario

    asked = Gathering()
    if len(options.paths) != 1:
        asked.wrong("PATH", f"{len(options.paths)} files", "one file")
    output = _output(options.output, options.paths, force=options.force)
    asked.attempt(output.check)
    named = Named(options.llm, _pairs(options.accelerator or (), asked), options.service)
    inputs = asked.attempt(lambda: _counts("--inputs", options.inputs))
    outputs = asked.attempt(lambda: _counts("--outputs", options.outputs))
    catalog, wrong = known_catalog(), asked.findings
    scenarios = [
        asked.attempt(
            lambda path=path: read(  # type: ignore[misc]
                path, catalog, named=named, inputs=inputs, outputs=outputs, wrong=wrong
            )
        )
        for path in options.paths
    ]
    asked.check()
    put(output, dump_scenario(made(scenarios[0])))
    return ExitCode.DONE


def import_aibrix(options: AibrixOptions) -> ExitCode:
    """Turn AIBrix's GPU profiles into a scenario with routing by length."""
    from planner.importers.aibrix import import_aibrix as read
    from planner.importers.rate_grids import Named
    from planner.planning import known_catalog
    from planner.scenario import dump_scenario

    asked = Gathering()
    output = _output(options.output, options.paths, force=options.force)
    asked.attempt(output.check)
    named = Named(options.llm, _pairs(options.accelerator or (), asked), options.service)
    shapes = [asked.attempt(lambda text=text: _traffic(text)) for text in options.traffic]  # type: ignore[misc]
    traffic = [each for each in shapes if each is not None]
    stated, wrong = traffic if len(traffic) == len(shapes) else None, asked.findings
    found = asked.attempt(
        lambda: read(options.paths, known_catalog(), named=named, traffic=stated, wrong=wrong)
    )
    asked.check()
    scenario, notes = made(found)
    put(output, dump_scenario(scenario))
    for each in notes:
        note(each)
    return ExitCode.DONE


def import_vllm(options: VllmOptions) -> ExitCode:
    """Turn vllm serve command lines and pod templates into variants."""
    from planner.importers.vllm import import_vllm as read
    from planner.importers.vllm import services_of
    from planner.planning import known_catalog

    asked = Gathering()
    output = _output(options.output, options.paths, force=options.force)
    asked.attempt(output.check)
    stated = options.traffic
    traffic = None if stated is None else asked.attempt(lambda: _traffic(stated))
    found = asked.attempt(lambda: read(options.paths, known_catalog(), accelerator=options.accelerator))
    asked.check()
    variants = made(found)
    document: dict[str, object] = {
        "services": {name: dict(each) for name, each in services_of(variants).items()}
    }
    if traffic is None:
        note("traffic and pools are left to you: add them, or give --traffic INxOUT=RATE")
    else:
        document = _with_traffic(document, variants, traffic)
    put(output, yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110))
    for each in variants:
        for left_out in each.notes:
            note(f"{each.service}/{each.variant.id}: {left_out}")
    return ExitCode.DONE


def _with_traffic(
    document: dict[str, object], variants: Iterable[ImportedVariant], traffic: Traffic
) -> dict[str, object]:
    """A whole scenario: traffic for each service, unlimited pools of the accelerators, and what runs."""
    shape = {"rate": traffic.arrival_rps, "input": traffic.input_tokens, "output": traffic.output_tokens}
    services = document["services"]
    whole = (
        {name: {**each, "traffic": shape} for name, each in services.items()}
        if isinstance(services, dict)
        else {}
    )
    pools = {each.variant.accelerator: {"accelerator": each.variant.accelerator} for each in variants}
    running = {
        f"{each.service}/{each.variant.id}@{each.variant.accelerator}": each.replicas
        for each in variants
        if each.replicas
    }
    found: dict[str, object] = {"mode": "unconstrained", "services": whole, "pools": pools}
    return found | {"current": running} if running else found


def _entry(llm: Llm) -> dict[str, object]:
    """Fields of an entry that are no defaults; the kind of attention is always said."""
    fields = llm.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    return fields | {"attention": {"kind": llm.attention.kind, **fields["attention"]}}


def put(output: Output, text: str) -> None:
    """Write an imported file and say so."""
    output.write(f"{_MARK}.\n{text}")
    if not output.on_stdout:
        out_console().print(f"written to {output.path}")


def _output(path: Path, inputs: Iterable[Path], *, force: bool) -> Output:
    return Output(path=path, ours=begins_with(_MARK), inputs=tuple(inputs), force=force)


def _pairs(texts: Iterable[str], asked: Gathering) -> Mapping[str, str]:
    """``GPU=NAME`` texts; the last one of a GPU counts."""
    pairs: dict[str, str] = {}
    for text in texts:
        gpu, sign, name = text.partition("=")
        if sign and gpu.strip() and name.strip():
            pairs[gpu.strip()] = name.strip()
        else:
            asked.wrong("--accelerator", repr(text), "GPU=NAME")
    return pairs


def _counts(option: str, text: str | None) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    if text is None:
        return ()
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(piece.isascii() and piece.isdigit() and len(piece) <= 9 for piece in pieces):  # noqa: PLR2004
        raise _wrong(option, repr(text), "whole numbers with commas between them")
    return tuple(int(piece) for piece in pieces)


def _traffic(text: str) -> Traffic:
    from planner.importers.rate_grids import Traffic

    shape, _, rate = text.partition("=")
    lengths = [piece.strip() for piece in shape.split("x")]
    try:
        input_tokens, output_tokens = (int(piece) for piece in lengths)
        arrival_rps = float(rate)
    except ValueError:
        raise _wrong("--traffic", repr(text), "INxOUT=RATE, e.g. 512x128=4") from None
    if not (
        1 <= input_tokens <= _MOST_TOKENS
        and 1 <= output_tokens <= _MOST_TOKENS
        and 0 <= arrival_rps <= _MOST_RPS
    ):
        raise _wrong("--traffic", repr(text), "tokens from 1 to 1e8 and a rate from 0 to 1e9 req/s")
    return Traffic(input_tokens, output_tokens, arrival_rps)


def _wrong(path: str, found: str, allowed: str) -> ConfigurationError:
    return ConfigurationError.from_findings([Finding("", None, path, found, allowed)])
