"""The edge of the program: options as one value, and every way to end as an exit code and a line on stderr.

A command is a function from a frozen dataclass of options to an exit code.

Exit codes: 0 done; 1 a fault of ours; 2 an input must change; 3 infeasible, or rules are broken; 4 no answer in
the time given, the answer could not be written, or try again later; 5 refused by a safety gate; 130 stopped from the keyboard; 141 nobody reads on.
"""

from __future__ import annotations

import errno
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from enum import IntEnum
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import typer

from planner.cli.terminal import complain, use_color
from planner.errors import ConfigurationError, FleetPlanError, InternalError

__all__ = [
    "DEBUG_VARIABLE",
    "Common",
    "ExitCode",
    "ends_well",
    "is_about_output",
    "takes",
    "unstated",
    "unwritten",
]

DEBUG_VARIABLE: Final = "FLEETPLAN_DEBUG"

_UNWRITTEN: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options that every command has."""

    color: Annotated[
        bool | None,
        typer.Option(
            "--color/--no-color", show_default=False, help="Colors, or none; default: on a terminal."
        ),
    ] = None
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a fault of ours.")] = False


Options = TypeVar("Options", bound=Common)


class ExitCode(IntEnum):
    """How the program ends."""

    DONE = 0
    OUR_FAULT = 1
    CHANGE_INPUT = 2
    NOT_KEPT = 3
    TRY_AGAIN = 4
    REFUSED = 5
    INTERRUPTED = 130
    NOBODY_READS = 141


def unstated(metavar: str, said: str, *names: str) -> Any:  # noqa: ANN401 - as typer has it
    """What typer reads of an option without a default: ``said`` tells what is done where it is left out."""
    return typer.Option(*names, metavar=metavar, show_default=False, help=said)


def takes(options: type[Options]) -> Callable[[Callable[[Options], ExitCode]], Callable[..., None]]:
    """Make a command of a function that takes its options as one frozen dataclass.

    Each field of ``options`` becomes a parameter: its annotation is what typer reads, its default the default.
    """
    hints = get_type_hints(options, include_extras=True)
    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[each.name],
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
        )
        for each in _own_first(options)
    ]

    def command_of(function: Callable[[Options], ExitCode]) -> Callable[..., None]:
        def command(**given: Any) -> None:  # noqa: ANN401 - typer hands over values of many types
            asked = options(**given)
            use_color(asked.color)
            code = ends_well(lambda: function(asked), debug=asked.debug)
            if code is not ExitCode.DONE:
                raise typer.Exit(int(code))

        command.__name__ = function.__name__
        command.__doc__ = function.__doc__
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
        return command

    return command_of


def ends_well(run: Callable[[], ExitCode], *, debug: bool = False) -> ExitCode:
    """Run, and turn whatever is raised into an exit code and words on stderr; never a traceback unless asked for."""
    try:
        code = run()
        sys.stdout.flush()
    except InternalError as fault:
        return _our_fault(fault, str(fault), debug=debug)
    except FleetPlanError as fault:
        return _said(_words(fault), ExitCode(fault.exit_code))
    except KeyboardInterrupt:
        return _said("stopped", ExitCode.INTERRUPTED)
    except Exception as fault:
        return _unexpected(fault, debug=debug)
    return code


def _unexpected(fault: Exception, *, debug: bool) -> ExitCode:
    if isinstance(fault, BrokenPipeError):
        _close_quietly()
        return ExitCode.NOBODY_READS
    if isinstance(fault, OSError) and is_about_output(fault):
        return unwritten(fault.strerror)
    return _our_fault(fault, f"{type(fault).__name__}: {fault}", debug=debug)


def is_about_output(fault: OSError) -> bool:
    """Whether a fault is of standard output: it names no file, and says that nothing more can be written."""
    return fault.filename is None and fault.errno in _UNWRITTEN


def unwritten(why: str | None) -> ExitCode:
    """Say that the answer found no place, and drop what is left of it."""
    if sys.stdout is not None:
        _close_quietly()
    return _said(f"could not write to standard output: {why}", ExitCode.TRY_AGAIN)


def _own_first(options: type[Common]) -> list[Field[Any]]:
    """Fields in the order of the help: what is the command's own before what every command has."""
    shared = {field.name for field in fields(Common)}
    return sorted(fields(options), key=lambda field: field.name in shared)


def _said(words: str, code: ExitCode) -> ExitCode:
    complain(words)
    return code


def _words(fault: FleetPlanError) -> str:
    if not isinstance(fault, ConfigurationError):
        return str(fault)
    # The heading repeats the files; one finding needs no heading.
    return str(fault.findings[0]) if len(fault.findings) == 1 else str(fault)


def _our_fault(fault: BaseException, what: str, *, debug: bool) -> ExitCode:
    if debug or os.environ.get(DEBUG_VARIABLE, "") not in {"", "0"}:
        sys.stderr.write("".join(traceback.format_exception(fault)))
    return _said(
        f"This is a fault of ours, not of your input: {what}\n"
        f"Please report it with the scenario and the output of the same command with --debug.",
        ExitCode.OUR_FAULT,
    )


def _close_quietly() -> None:
    # The interpreter flushes stdout once more when it ends, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
