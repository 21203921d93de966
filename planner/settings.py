"""Settings of the process, from the environment: ``FLEETPLAN_TIME_LIMIT_S=30`` and so on.

What decides the answer (demand, thresholds, prices) belongs into the scenario, never here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from models.units import PositiveCount, PositiveSeconds, Share
from planner.errors import ConfigurationError, Finding

__all__ = ["PREFIX", "LogLevel", "Settings", "load_settings"]

PREFIX = "FLEETPLAN_"

_MOST_THREADS: Final = 256
"""More workers than this do not find better plans, and may be more than the machine can start."""

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class Settings(BaseSettings):
    """Defaults of the process; a flag on the command line overrides each of them."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, use_attribute_docstrings=True)

    threads: Annotated[PositiveCount, Field(le=_MOST_THREADS)] | None = None
    """Workers of a solver, a count up to 256. Default None: as many as there are cores, and 8 of CP-SAT even on two: with
    fewer it drops the strategies that find good plans, which costs more than sharing a core does."""

    time_limit_s: PositiveSeconds = 60.0
    """Wall-clock limit of one decision, seconds: the answer and, where there is none, the best plan
    under scarcity and the reasons. Default 60: a person waits that long once, and most plans are
    proven far sooner."""

    gap: Share = 1e-4
    """Relative gap at which a level counts as optimal, 1. Default 0.01 %: below what any price or
    measured rate is known to."""

    catalog_dir: Path | None = None
    """Folder to read the catalog from, a path. Default None: the one that came with fleetplan, so
    that equal versions give equal plans."""

    test_data: Path | None = None
    """Folder with measured data of others, a path; ``reproduce measured-vllm`` reads its ``perf/vllm_runs``.
    Default None: they are not shipped."""

    log_level: LogLevel = "WARNING"
    """Least severe record that is written to stderr. INFO and DEBUG write one line of ``key=value``
    pairs per decision. Default WARNING: a plan on the screen should stand alone."""


def load_settings() -> Settings:
    """Read the settings from the environment.

    Raises:
        ConfigurationError: a variable holds what its setting does not allow; lists all of them.
    """
    try:
        return Settings()
    except ValidationError as cause:
        findings = [
            Finding(
                file="",
                line=None,
                path=f"{PREFIX}{'_'.join(str(part) for part in fault['loc']).upper()}",
                found=repr(fault["input"]),
                allowed=fault["msg"],
            )
            for fault in cause.errors(include_url=False)
        ]
        raise ConfigurationError("the environment holds wrong settings", findings=findings) from cause
