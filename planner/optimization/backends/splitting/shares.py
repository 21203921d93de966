"""Whether shares can follow a choice, and if not, a cut that says why: the linear program of the shares in HiGHS.

Rows may be missed at a price: by more of the chosen columns, at their weight in the goal, or as a last resort by slack.
The least price is 0 where shares exist. Its multipliers u make a cut on the choices, valid for any u:

    u·D·x >= Σ max(u, 0)·low + Σ min(u, 0)·high − Σ_j max over the box of (u·E)_j·a_j

With u >= 0 on occupancy and the best multiplier for each bucket this is  Σ_c u_c·n_c >= Σ_b min_c u_c·λ_b/μ_cb.
Sources: Benders 1962, doi 10.1007/BF01386316; Magnanti and Wong 1981, doi 10.1287/opre.29.3.464, on inner points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import highspy
import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.highs import quiet_highs, run_for
from planner.optimization.backends.splitting.parts import Entries, Following

__all__ = ["Cut", "Response", "Shares"]

Floats = NDArray[np.float64]

_LAST_RESORT: Final = 100.0
"""Price of missing a row by slack, in units of the dearest price times what a share can occupy."""

_UNPRICED: Final = 0.1
"""Price of a chosen column that the goal does not weigh, where the dearest is 1."""

_SAFETY: Final = 1e-11
"""Rounding of sums, relative to the sum of what is added up."""


@dataclass(frozen=True, slots=True)
class Cut:
    """``terms · x >= side`` for all choices that shares can follow."""

    terms: Floats
    side: float

    def missing(self, x: Floats) -> float:
        """By how much a choice misses it."""
        return float(self.side - self.terms @ x)


@dataclass(frozen=True, slots=True)
class Response:
    """The least price of missing rows (0: none is missed), the shares, what was added to the choice, multipliers."""

    price: float
    shares: Floats
    more: Floats
    multipliers: Floats


class Shares:
    """The rows with shares, kept in HiGHS and asked for one choice after another."""

    def __init__(self, following: Following, weights: Floats) -> None:
        """Weights of the chosen columns in the goal, the largest 1."""
        self._f = following
        self._prices = np.where(weights > 0, weights, _UNPRICED)
        self._rows, self._free = len(following.low), len(following.most)
        self._margins = np.ones(self._rows)
        self._highs = self._model()

    def _model(self) -> highspy.Highs:
        f, inf = self._f, highspy.kHighsInf
        below = np.flatnonzero(np.isfinite(f.low))
        above = np.flatnonzero(np.isfinite(f.high))
        chosen = len(self._prices)
        slacks = len(below) + len(above)
        largest = float(np.abs(f.e.value).max(initial=1.0))
        total = self._free + chosen + slacks
        first = self._free + chosen
        row = np.concatenate([f.e.row, f.d.row, below, above])
        column = np.concatenate([f.e.column, f.d.column + self._free, np.arange(first, total)])
        value = np.concatenate([f.e.value, f.d.value, np.ones(len(below)), -np.ones(len(above))])
        order = np.argsort(column, kind="stable")
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = total, self._rows
        lp.col_cost_ = np.concatenate(
            [np.zeros(self._free), self._prices, np.full(slacks, _LAST_RESORT * largest)]
        )
        lp.col_lower_ = np.concatenate([f.least, np.zeros(chosen + slacks)])
        lp.col_upper_ = np.concatenate([self._roomy(), np.full(chosen + slacks, inf)])
        lp.row_lower_, lp.row_upper_ = f.low, f.high
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=total))])
        lp.a_matrix_.index_, lp.a_matrix_.value_ = row[order], value[order]
        highs = quiet_highs()
        highs.passModel(lp)
        return highs

    def _roomy(self) -> Floats:
        """Upper ends; none where the home row of a share, whose shares are all counted up, keeps it below 1 anyway."""
        f = self._f
        signs = np.ones(self._rows, dtype=bool)
        np.logical_and.at(signs, f.e.row, f.e.value > 0)
        signs[f.d.row] = False
        if not self._rows:
            return np.asarray(f.most, dtype=np.float64)
        kept = (f.home >= 0) & signs[f.home] & (f.least >= 0)
        fits = kept & (f.high[f.home] <= f.most * self._at_home() + 1e-12)
        return np.where(fits, highspy.kHighsInf, f.most)

    def _at_home(self) -> Floats:
        """Coefficient of each share in its home row; 1 where it has none."""
        f, found = self._f, np.ones(self._free)
        at = f.home[f.e.column] == f.e.row
        found[f.e.column[at]] = f.e.value[at]
        return found

    def keep_apart(self, steps: float) -> None:
        """From now on a row that chosen columns make room for keeps so many grid steps of that room free."""
        f = self._f
        negative = np.zeros(self._rows, dtype=bool)
        negative[f.d.row[f.d.value < 0]] = True
        tied = np.zeros(self._rows, dtype=bool)
        tied[f.d.row] = True
        able = tied & ~negative & np.isinf(f.high)
        self._margins = np.where(able, 1 - np.minimum(steps * f.step, 0.5), 1.0)

    def _room(self, x: Floats) -> Floats:
        return self._margins * self._f.d.times(x, self._rows)

    def follow(self, x: Floats, seconds: float) -> Response | None:
        """The least price at a choice; None where time is over.

        Args:
            x: values of the chosen columns; need not be whole.
            seconds: wall time at most.
        """
        if seconds <= 0:
            return None
        room = self._room(x)
        every = np.arange(self._rows, dtype=np.int32)
        self._highs.changeRowsBounds(  # type: ignore[attr-defined]
            self._rows, every, self._f.low - room, self._f.high - room
        )
        if run_for(self._highs, seconds) != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._highs.getSolution()
        found = np.array(solution.col_value)
        return Response(
            price=float(self._highs.getInfo().objective_function_value),
            shares=found[: self._free],
            more=found[self._free : self._free + len(self._prices)],
            multipliers=np.array(solution.row_dual),
        )

    def cut(self, response: Response, x: Floats) -> Cut:
        """The cut of a response: of its multipliers, and of those with the best ones for equalities, what x misses more."""
        f = self._f
        u = response.multipliers
        u = np.where((u > 0) & np.isinf(f.low) | (u < 0) & np.isinf(f.high), 0.0, u)
        better = u.copy()
        homed = f.home >= 0
        worst = np.full(self._rows, -np.inf)
        np.maximum.at(worst, f.home[homed], (f.e.across(u, self._free) / self._at_home())[homed])
        better[np.isfinite(worst)] -= worst[np.isfinite(worst)]
        return max(self._cut_of(u), self._cut_of(better), key=lambda cut: cut.missing(x))

    def _cut_of(self, u: Floats) -> Cut:
        f = self._f
        gains = _sum(np.where(u > 0, u, 0.0), f.low) + _sum(np.where(u < 0, u, 0.0), f.high)
        slopes = f.e.across(u, self._free)
        given = np.where(slopes > 0, slopes * f.most, slopes * f.least)
        size = float(np.abs(given).sum() + abs(gains))
        scaled = Entries(f.d.row, f.d.column, f.d.value * self._margins[f.d.row])
        return Cut(scaled.across(u, len(self._prices)), gains - float(given.sum()) - _SAFETY * size)


def _sum(weights: Floats, sides: Floats) -> float:
    used = weights != 0
    return float(weights[used] @ sides[used])
