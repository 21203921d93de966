"""The fitted shares that came with fleetplan (data/performance/roofline.yaml), and what they leave unexplained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from planner.performance.fitted import read_fitted
from planner.performance.roofline.formula import Shares

__all__ = ["KnownShares", "Residuals", "known_shares"]


@dataclass(frozen=True, slots=True)
class Residuals:
    """Quantiles of ln(measured / modeled) of LLMs that the fit had not seen.

    Attributes:
        levels: shares of the measured rows, rising.
        itl: quantiles of the inter-token latency.
        ttft: quantiles of the time to first token.
    """

    levels: tuple[float, ...]
    itl: tuple[float, ...]
    ttft: tuple[float, ...]

    def factors(self, level: float) -> tuple[float, float]:
        """What modeled ITL and TTFT are multiplied by, so that this share of measured rows was no slower."""
        return math.exp(_between(self.levels, self.itl, level)), math.exp(
            _between(self.levels, self.ttft, level)
        )


@dataclass(frozen=True, slots=True)
class KnownShares:
    """Everything that the roofline knows beside the hardware.

    Attributes:
        common: shares for an engine that nobody measured.
        engines: by engine; ``engine@benchmark`` where one benchmark ran another version of it.
        in_flight_most: the most requests in flight that any row had.
        residuals: what the fit leaves unexplained.
    """

    common: Shares[float]
    engines: Mapping[str, Shares[float]]
    in_flight_most: float
    residuals: Residuals

    def of(self, engine: str | None) -> Shares[float]:
        """Shares of an engine: the geometric mean over the benchmarks of it; unknown or None: the common ones."""
        rows = [shares for name, shares in self.engines.items() if name.partition("@")[0] == engine]
        if not rows:
            return self.common
        names = [field.name for field in fields(Shares)]
        return Shares(**{name: _geometric_mean([getattr(row, name) for row in rows]) for name in names})


@cache
def known_shares(path: Path | None = None) -> KnownShares:
    """Read the file.

    Args:
        path: another file of the same form; None: the one that came with fleetplan.

    Raises:
        CatalogError: the file is missing or does not hold what it must.
    """
    return read_fitted("roofline", path, noun="shares of the roofline", parse=_parsed)


def _parsed(document: Mapping[str, Any]) -> KnownShares:
    residuals = {
        name: tuple(float(value) for value in values) for name, values in document["residuals"].items()
    }
    if len({len(values) for values in residuals.values()}) != 1 or list(residuals["levels"]) != sorted(
        residuals["levels"]
    ):
        raise ValueError("residuals: as many quantiles as levels, levels rising")
    return KnownShares(
        common=_shares(document["common"]),
        engines={str(name): _shares(values) for name, values in document["engines"].items()},
        in_flight_most=float(document["in_flight_most"]),
        residuals=Residuals(**residuals),
    )


def _shares(values: Mapping[str, float]) -> Shares[float]:
    shares = Shares(**{str(name): float(value) for name, value in values.items()})
    wrong = [field.name for field in fields(shares) if not 0 <= getattr(shares, field.name) < math.inf]
    if wrong:
        raise ValueError(f"negative or infinite: {', '.join(wrong)}")
    return shares


def _geometric_mean(values: Sequence[float]) -> float:
    if min(values) == 0:
        return 0.0
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _between(levels: Sequence[float], values: Sequence[float], level: float) -> float:
    """Linear between levels; beyond the outermost ones the value there."""
    if level <= levels[0]:
        return values[0]
    for i in range(1, len(levels)):
        if level <= levels[i]:
            share = (level - levels[i - 1]) / (levels[i] - levels[i - 1])
            return values[i - 1] + share * (values[i] - values[i - 1])
    return values[-1]
