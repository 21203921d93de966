"""``controller check``: everything that would keep a controller from working, before it is started."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.edge import ExitCode
from planner.cli.setting_layers import SettingOptions, layers_of
from planner.cli.terminal import out_console

if TYPE_CHECKING:
    from planner.control.running.checking_result import Checked

__all__ = ["ControllerCheckOptions", "controller_check"]


@dataclass(frozen=True, kw_only=True)
class ControllerCheckOptions(SettingOptions):
    """Options of ``controller check``."""

    yes: Annotated[bool, typer.Option("--yes", help="For a controller that acts (act), as with 'run --yes'.")] = False  # fmt: skip
    home: Annotated[
        str | None,
        typer.Option("--home", metavar="NAME", show_default=False, help="Namespace that it will run in; default: that of this pod, else default."),
    ] = None  # fmt: skip
    every: Annotated[bool, typer.Option("--all", help="Show what is as it should be, too.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


def controller_check(options: ControllerCheckOptions) -> ExitCode:
    """Look before the first start: permissions, kinds, leader, settings, variants, scalers, metrics; it changes nothing.

    Exit code 3 when there is a problem; each is shown with what to do.
    """
    from planner.clock import SystemClock
    from planner.control.running.checking import checked_before_start
    from planner.control.running.configuring import configured
    from planner.control.running.opening import home_namespace

    settings = configured(layers_of(options, act=True if options.yes else None)).settings
    found = checked_before_start(settings, SystemClock(), home=options.home or home_namespace())
    if options.as_json:
        sys.stdout.write(f"{json.dumps(_document(found), indent=2, ensure_ascii=False)}\n")
    else:
        from planner.cli.screen.checking import show_checks

        show_checks(out_console(), found, every=options.every)
    return ExitCode.NOT_KEPT if any(each.bad for each in found) else ExitCode.DONE


def _document(found: tuple[Checked, ...]) -> dict[str, object]:
    return {
        "good": not any(each.bad for each in found),
        "checks": [dataclasses.asdict(each) for each in found],
    }
