"""Where the controller is, and how it stands."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import streamlit as st

from models.controller_status import ControllerStatus
from models.cycle_record import CycleRecord
from planner.clock import SystemClock
from planner.errors import ConfigurationError, Finding

__all__ = ["RECORDS", "URL", "Look", "is_here_alone", "look_at", "named"]

RECORDS: Final = "FLEETPLAN_RECORDS"
"""Folder that the controller writes its records to."""

URL: Final = "FLEETPLAN_CONTROLLER_URL"
"""Address of its server, where it is asked in place of its records."""

TOKEN_FILE: Final = "FLEETPLAN_CONTROLLER_TOKEN_FILE"  # noqa: S105 - the name of a variable
_NEWEST: Final = 500
_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Look:
    """How the controller stands.

    Attributes:
        status: now, or at its last record.
        records: the newest, from the oldest on; none where it was asked itself.
        live: whether it said so itself.
    """

    status: ControllerStatus
    records: tuple[CycleRecord, ...] = ()
    live: bool = False


def named() -> str:
    """Where it is, as the environment says; empty: nobody said."""
    return os.environ.get(RECORDS, "") or os.environ.get(URL, "")


def is_here_alone() -> bool:
    """Whether this app listens on this machine alone: then whoever sees it may name folders and addresses here."""
    return _is_loopback(str(st.get_option("server.address") or ""))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def look_at(place: str) -> Look:
    """How the controller of a place stands.

    Args:
        place: a folder of records, or an address. Other machines must be named by the environment.

    Raises:
        ConfigurationError: it is neither, holds no record, or is not ours to ask.
        TemporaryError: it does not answer.
        PermanentError: it does not let us in.
    """
    from planner.control.running.asking import asked_status, recent_records, status_after

    clock = SystemClock()
    if place.startswith(("http://", "https://")):
        if place != os.environ.get(URL) and not _is_loopback(urlsplit(place).hostname or ""):
            allowed = f"an address of this machine; another one by the variable {URL}"
            raise ConfigurationError.from_findings([Finding("", None, "", "another machine", allowed)])
        token = os.environ.get(TOKEN_FILE)
        credentials = {"token_file": token} if token and place == os.environ.get(URL) else {}
        return Look(asked_status(place, credentials, clock, timeout_s=_TIMEOUT_S), live=True)
    records = recent_records(Path(place), newest=_NEWEST)
    return Look(status_after(records, clock), records)
