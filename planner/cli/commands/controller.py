"""``controller run|config|status``: the loop against clusters, what it is told and from where, and how it stands."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planner.cli.edge import Common, ExitCode
from planner.cli.setting_layers import SettingOptions, layers_of
from planner.cli.terminal import note, out_console
from planner.errors import TemporaryError

if TYPE_CHECKING:
    from models.controller_status import ControllerStatus
    from models.cycle_record import CycleRecord
    from planner.control.running.controller import Controller

__all__ = [
    "ConfigOptions",
    "RunOptions",
    "StatusOptions",
    "controller_config",
    "controller_run",
    "controller_status",
]

_URL: Final = "http://127.0.0.1:9470"
_FORMAT: Final = "time=%(asctime)s level=%(levelname)s %(message)s"


@dataclass(frozen=True, kw_only=True)
class RunOptions(SettingOptions):
    """Options of ``controller run``."""

    yes: Annotated[bool, typer.Option("--yes", help="Carry decisions out (act); without it, nothing is changed unless the settings say so.")] = False  # fmt: skip
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing, whatever the settings say, and print what would be done.")] = False  # fmt: skip
    once: Annotated[bool, typer.Option("--once", help="One cycle, then end.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print records as JSON, one on a line.")] = False


@dataclass(frozen=True, kw_only=True)
class ConfigOptions(SettingOptions):
    """Options of ``controller config``."""

    set_alone: Annotated[bool, typer.Option("--set-only", help="Leave out what stands at its default.")] = False  # fmt: skip
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


@dataclass(frozen=True, kw_only=True)
class StatusOptions(Common):
    """Options of ``controller status``."""

    url: Annotated[str | None, typer.Option("--url", metavar="URL", show_default=False, help=f"Where it listens; default {_URL}.")] = None  # fmt: skip
    records: Annotated[Path | None, typer.Option("--records", metavar="DIR", show_default=False, help="Read its records in place of asking it.")] = None  # fmt: skip
    token_file: Annotated[Path | None, typer.Option("--token-file", metavar="FILE", show_default=False, help="Bearer token.")] = None  # fmt: skip
    ca_file: Annotated[Path | None, typer.Option("--ca-file", metavar="FILE", show_default=False, help="Certificates to trust (PEM).")] = None  # fmt: skip
    insecure: Annotated[bool, typer.Option("--insecure-skip-verify", help="Trust any certificate.")] = False
    allow_http: Annotated[bool, typer.Option("--allow-http", help="Allow http to another machine.")] = False
    timeout_s: Annotated[float, typer.Option("--timeout", min=0.1, max=600, metavar="S", help="Longest time to wait for it.")] = 10.0  # fmt: skip
    every: Annotated[bool, typer.Option("--all", help="Show every variant, not only the first ones.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False


def controller_run(options: RunOptions) -> ExitCode:
    """Run the loop: observe, decide, look again, act, write down; until SIGTERM or Ctrl-C.

    A dry run unless --yes, or the setting act. One of several controllers leads, by a Lease. Exit code 4 when --once finds
    that another one leads, or a source did not answer.
    """
    from planner.clock import SystemClock
    from planner.control.running.opening import Opening, open_controller

    _log()
    if options.yes and options.dry_run:
        from planner.errors import ConfigurationError, Finding

        raise ConfigurationError.from_findings(
            [Finding("", None, "--yes", "--yes and --dry-run", "one of them")]
        )
    layers = layers_of(options, act=False if options.dry_run else True if options.yes else None)
    printing = _Printing(options)
    controller = open_controller(Opening(layers=layers, clock=SystemClock(), told=printing))
    printing.acts = controller.loop.settings.act
    stopping = _Stopping(controller)
    if options.once:
        return _once(controller)
    note(f"{'acting' if printing.acts else 'a dry run: nothing is changed'}; SIGTERM or Ctrl-C ends it")
    controller.run()
    return ExitCode.INTERRUPTED if stopping.by_keyboard else ExitCode.DONE


def controller_config(options: ConfigOptions) -> ExitCode:
    """Show every setting with its value and where it is from: a flag, a variable, a file, a ConfigMap, or the default."""
    from planner.clock import SystemClock
    from planner.control.running.live import LiveConfiguration
    from planner.control.running.opening import home_namespace, open_apis

    layers = layers_of(options)
    live = LiveConfiguration(layers)
    findings: Sequence[Any] = ()
    if live.settings.live is not None:
        apis = open_apis(live.settings, SystemClock())
        live = LiveConfiguration(layers, apis[0] if apis else None, namespace=home_namespace())
        findings = live.refresh()
    rows = [each for each in live.configuration.values() if not options.set_alone or each.origin != "default"]
    if options.as_json:
        document = {
            "settings": [{"path": each.path, "value": each.value, "origin": each.origin} for each in rows],
            "fingerprint": live.settings.fingerprint,
            "findings": [each.model_dump(mode="json") for each in findings],
        }
        sys.stdout.write(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
    else:
        from planner.cli.screen.controller import show_settings

        show_settings(out_console(), rows, findings)
    return ExitCode.TRY_AGAIN if findings else ExitCode.DONE


def controller_status(options: StatusOptions) -> ExitCode:
    """Show who leads, when it looked last, and what every variant is to have and why.

    Exit code 4 when it does not answer.
    """
    status = _status(options)
    if options.as_json:
        sys.stdout.write(f"{status.canonical_json()}\n")
    else:
        from planner.cli.screen.controller import show_status

        show_status(out_console(), status, every=options.every)
    return ExitCode.DONE


class _Printing:
    """Prints records: those of a dry run, and all of them as JSON."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self.acts = False

    def __call__(self, record: CycleRecord) -> None:
        """Print a record."""
        if self._options.as_json:
            sys.stdout.write(f"{record.canonical_json()}\n")
            sys.stdout.flush()
        elif self._options.once or not self.acts:
            from planner.cli.screen.controller import show_cycle

            show_cycle(out_console(), record, every=self._options.once)


class _Stopping:
    """Ends a controller at the first signal, and the process at the second."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.by_keyboard = False
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._stop)

    def _stop(self, number: int, _: object) -> None:
        self.by_keyboard = number == signal.SIGINT
        signal.signal(number, signal.SIG_DFL)
        self._controller.stop()


def _once(controller: Controller) -> ExitCode:
    try:
        record = controller.once()
    finally:
        controller.end()
    if record is None:
        raise TemporaryError(
            f"{controller.parts.election.holder or 'another controller'} leads; nothing was done"
        )
    return ExitCode.DONE if record.report.complete else ExitCode.TRY_AGAIN


def _status(options: StatusOptions) -> ControllerStatus:
    from planner.clock import SystemClock
    from planner.control.running.asking import asked_status, recorded_status

    if options.records is not None:
        if options.url is not None:
            from planner.errors import ConfigurationError, Finding

            raise ConfigurationError.from_findings(
                [Finding("", None, "--records", "--url beside it", "one of them")]
            )
        return recorded_status(options.records, SystemClock())
    credentials = {
        "token_file": options.token_file,
        "ca_file": options.ca_file,
        "insecure_skip_verify": options.insecure or None,
        "allow_http": options.allow_http or None,
    }
    given = {name: value for name, value in credentials.items() if value is not None}
    return asked_status(options.url or _URL, given, SystemClock(), timeout_s=options.timeout_s)


def _log() -> None:
    """One line of ``key=value`` pairs on stderr for each thing that happens; cycles are told of unless the level says less."""
    from planner.settings import PREFIX, load_settings

    level = load_settings().log_level if os.environ.get(f"{PREFIX}LOG_LEVEL") else "INFO"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger = logging.getLogger("planner")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
