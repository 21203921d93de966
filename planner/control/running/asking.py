"""How a controller stands: asked at its server, or read from its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.controller_status import ControllerStatus
from models.cycle_record import CycleRecord, VariantDecision
from planner.clock import Clock
from planner.control.running.recording import read_records, record_files
from planner.errors import ConfigurationError, Finding, PermanentError, TemporaryError, allowed_by

__all__ = ["asked_status", "recent_records", "recorded_status", "status_after"]

_TRIES = 2


def asked_status(
    url: str, credentials: dict[str, Any], clock: Clock, *, timeout_s: float = 10.0
) -> ControllerStatus:
    """What a running controller says of itself.

    Args:
        url: of its server, e.g. ``http://127.0.0.1:9470``.
        credentials: ``token_file``, ``ca_file``, ``client_cert``, ``client_key``, ``insecure_skip_verify``, ``allow_http``.
        clock: for limits.
        timeout_s: longest time, s.

    Raises:
        ConfigurationError: the address or a credential cannot be used, or httpx is not installed.
        PermanentError: it does not let us in.
        TemporaryError: it does not answer, or what answers is no controller.
    """
    try:
        from planner.control.collectors.access import Access, Fault, Trouble
        from planner.control.collectors.transport import Connections, Web
    except ModuleNotFoundError as cause:
        raise ConfigurationError(
            f"asking a controller needs the Python package {cause.name!r}: pip install 'fleetplan[metrics]'"
        ) from None
    try:
        access = Access.model_validate(
            {"url": url, "timeout_s": timeout_s, "retries": {"tries": _TRIES}, **credentials}
        )
    except ValidationError as cause:
        findings = [
            Finding("", None, ".".join(map(str, fault["loc"])) or "url", _found(fault), _allowed(fault))
            for fault in cause.errors(include_url=False)
        ]
        raise ConfigurationError.from_findings(findings) from None
    connections = Connections(access, most=1)
    try:
        body = Web(access, clock, connections).get("/status", end_s=clock.monotonic_s() + timeout_s)
        return ControllerStatus.model_validate_json(body)
    except Fault as fault:
        kind = PermanentError if fault.trouble is Trouble.DENIED else TemporaryError
        raise kind(f"{fault}; is a controller running there?") from None
    except ValidationError:
        raise TemporaryError("what answers there is no controller, or one of another version") from None
    finally:
        connections.close()


def recorded_status(folder: Path, clock: Clock) -> ControllerStatus:
    """How a controller stood at its last record.

    Args:
        folder: that it writes records to.
        clock: for the time at which this is said.

    Raises:
        ConfigurationError: there is no record.
    """
    return status_after(recent_records(folder), clock)


def recent_records(folder: Path, *, newest: int = 1000) -> tuple[CycleRecord, ...]:
    """The newest records of a controller, the oldest of them first; one at least.

    Args:
        folder: that it writes records to.
        newest: so many of them at most.

    Raises:
        ConfigurationError: there is no record.
    """
    records = tuple(read_records(folder, newest=newest)) if folder.is_dir() and record_files(folder) else ()
    if not records:
        found = f"{str(folder)!r}, where no controller has written anything"
        raise ConfigurationError.from_findings(
            [Finding("", None, "--records", found, "a folder with records of cycles")]
        )
    return records


def status_after(records: Sequence[CycleRecord], clock: Clock) -> ControllerStatus:
    """How a controller stood at the last of its records: the newest decision of every variant that they name.

    Args:
        records: the oldest first; one at least.
        clock: for the time at which this is said.
    """
    last = records[-1]
    decisions: dict[tuple[str, str, str], VariantDecision] = {}
    for record in records:
        decisions.update({each.key: each for each in record.decisions})
    return ControllerStatus(
        controller=last.controller,
        at_s=clock.unix_s(),
        leader=last.leader,
        holder=last.controller if last.leader else "",
        act=not last.dry_run,
        cycles=last.number,
        last_cycle_s=last.at_s + sum(last.report.seconds.values()),
        settings=last.settings,
        decisions=tuple(each for _, each in sorted(decisions.items())),
        findings=last.findings,
        report=last.report,
        last_record=last.fingerprint,
    )


def _found(fault: Any) -> str:  # noqa: ANN401 - one of pydantic's error details
    return str(fault["msg"]).removeprefix("Value error, ").partition("; allowed: ")[0]


def _allowed(fault: Any) -> str:  # noqa: ANN401 - one of pydantic's error details
    return allowed_by(fault) if "; allowed: " in str(fault["msg"]) else ""
