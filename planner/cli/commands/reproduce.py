"""``reproduce``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.cli.edge import Common, ExitCode
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.reproduction import Reproduction

__all__ = ["ReproduceOptions", "reproduce"]

_ALL: Final = "all"
_PAGE: Final = "reproduction"
_IMAGES: Final = "images"


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Common):
    """Options of ``reproduce``."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|all", help="Experiment, or all of them; 'list' names them.", show_default=False
        ),
    ]
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            show_default=False,
            help=f"Write {_PAGE}.md (one experiment: {_PAGE}-NAME.md) and its figures under {_IMAGES}/ into this folder.",
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Runs with different chance behind each figure.")
    ] = 5
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of Markdown.")] = False


def reproduce(options: ReproduceOptions) -> ExitCode:
    """Run published experiments again in the twin, and set the figures beside the published ones."""
    from planner.reproduction import EXPERIMENTS, check_names, document

    if options.name == "list":
        sys.stdout.write("".join(f"{name}\n" for name in EXPERIMENTS))
        return ExitCode.DONE
    if options.name != _ALL:
        check_names(options.name)
    page = None if options.folder is None else _page(options.folder, options.name, force=options.force)
    found = _run(options)
    if page is not None and options.folder is not None:
        _draw(found, options.folder / _IMAGES)
        page.write(document(found, images=_IMAGES))
        note(f"saved to {page.path}")
    if options.as_json:
        from planner.cli.json_output import as_json

        sys.stdout.write(as_json({"reproductions": [each.model_dump(mode="json") for each in found]}))
    elif page is None:
        sys.stdout.write(document(found, images=_IMAGES))
    return ExitCode.DONE


def _page(folder: Path, name: str, *, force: bool) -> Output:
    """Where the page goes; refused before anything runs.

    Raises:
        ConfigurationError: the folder or what draws is missing, or a page is there that is not ours.
    """
    from planner.cli.pictures import INSTALL, lacking
    from planner.reproduction.document import HEAD

    missing = lacking()
    if missing:
        raise ConfigurationError(f"figures need {' and '.join(missing)}: {INSTALL}")
    if not folder.is_dir():
        finding = Finding("", None, "--output", f"no folder {str(folder)!r}", "a folder that exists")
        raise ConfigurationError.from_findings([finding])
    file = f"{_PAGE}.md" if name == _ALL else f"{_PAGE}-{name}.md"
    page = Output(path=folder / file, ours=begins_with(HEAD), force=force)
    page.check()
    return page


def _run(options: ReproduceOptions) -> list[Reproduction]:
    from planner.reproduction import EXPERIMENTS, runnable
    from planner.reproduction import reproduce as run

    names = runnable() if options.name == _ALL else [options.name]
    for name in EXPERIMENTS if options.name == _ALL else ():
        if name not in names:
            note(f"left out: {name}, whose data are not shipped (FLEETPLAN_TEST_DATA)")
    found = []
    for place, name in enumerate(names, start=1):
        if len(names) > 1:
            note(f"{place} of {len(names)}: {name}")
        found.append(run(name, seeds=options.seeds))
    return found


def _draw(found: Sequence[Reproduction], folder: Path) -> None:
    """The pictures, each replaced in one move.

    Raises:
        ConfigurationError: a picture cannot be written.
    """
    from planner.charts.reproductions import picture_chart
    from planner.charts.saving import save_chart

    folder.mkdir(exist_ok=True)
    for each in found:
        for picture in each.pictures:
            save_chart(picture_chart(picture), folder / f"{picture.name}.svg")
