"""``controller release``: scalers, pods and endpoint pickers get back what a controller holds."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.edge import ExitCode
from planner.cli.setting_layers import SettingOptions, layers_of
from planner.cli.terminal import out_console

if TYPE_CHECKING:
    from planner.control.running.releasing import Released

__all__ = ["ControllerReleaseOptions", "controller_release"]


@dataclass(frozen=True, kw_only=True)
class ControllerReleaseOptions(SettingOptions):
    """Options of ``controller release``."""

    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it, what would be done is shown.")] = (
        False
    )
    home: Annotated[
        str | None,
        typer.Option("--home", metavar="NAME", show_default=False, help="Namespace that the controller ran in; default: that of this pod, else default."),
    ] = None  # fmt: skip
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


def controller_release(options: ControllerReleaseOptions) -> ExitCode:
    """Give back what a controller holds, before it is removed: bounds of HPAs, pauses of ScaledObjects, pods to routing.

    A dry run unless --yes. Stop the controller first: exit code 5 while one leads. Exit code 4 when something could not
    be read or given back.
    """
    from planner.clock import SystemClock
    from planner.control.running.configuring import configured
    from planner.control.running.opening import home_namespace
    from planner.control.running.releasing import release_all

    settings = configured(layers_of(options)).settings
    found = release_all(settings, SystemClock(), home=options.home or home_namespace(), act=options.yes)
    if options.as_json:
        sys.stdout.write(f"{json.dumps(_document(found), indent=2, ensure_ascii=False)}\n")
    else:
        from planner.cli.screen.releasing import show_released

        show_released(out_console(), found, done=options.yes)
    return ExitCode.DONE if found.complete and not found.left else ExitCode.TRY_AGAIN


def _document(found: Released) -> dict[str, object]:
    return {
        "complete": found.complete,
        "outcomes": [
            {
                "actuator": each.actuator,
                "cluster": each.decision.variant.cluster,
                "namespace": each.decision.variant.namespace,
                "name": each.decision.variant.name,
                "code": str(each.code),
                "message": each.message,
            }
            for each in found.outcomes
        ],
        "findings": [each.model_dump() for each in found.findings],
    }
