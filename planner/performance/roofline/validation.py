"""How far the fit is off on rows it has not seen: an LLM left out, with its twins; or an accelerator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.performance.roofline.fitting import Observation, fit_shares, predict

__all__ = ["LeftOut", "left_out", "weighted_quantile"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One row as a fit without its group predicts it.

    Attributes:
        row: as measured.
        group: what was left out.
        itl_s: predicted.
        ttft_s: predicted.
    """

    row: Observation
    group: str
    itl_s: float
    ttft_s: float

    @property
    def rps(self) -> float:
        """Predicted rate of the closed loop, req/s; a row whose source tells no input length has no first token."""
        work = self.row.work
        first = self.ttft_s if work.input_tokens else self.itl_s
        return self.row.in_flight / (first + (work.output_tokens - 1.0) * self.itl_s)


def left_out(
    rows: Sequence[Observation], group_of: Callable[[Observation], str], *, same_accelerator: bool
) -> Iterator[LeftOut]:
    """Every row predicted by a fit of all rows outside its group.

    Args:
        rows: all measured rows.
        group_of: what is left out together.
        same_accelerator: only rows whose accelerator other groups have rows of, too.
    """
    for group in sorted({group_of(row) for row in rows}):
        seen = [row for row in rows if group_of(row) != group]
        unseen = [row for row in rows if group_of(row) == group]
        if same_accelerator:
            known = {row.accelerator for row in seen}
            unseen = [row for row in unseen if row.accelerator in known]
        if not seen or not unseen:
            continue
        itl, ttft = predict(fit_shares(seen), unseen)
        for row, itl_s, ttft_s in zip(unseen, itl.tolist(), ttft.tolist(), strict=True):
            yield LeftOut(row, group, itl_s, ttft_s)


def weighted_quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    """The value below which this share of the weight lies, linear between the middles of the steps.

    Raises:
        ValueError: there is no value.
    """
    if not values:
        raise ValueError("no value, no quantile")
    order = np.argsort(values, kind="stable")
    sorted_values, sorted_weights = np.asarray(values)[order], np.asarray(weights)[order]
    reached = (np.cumsum(sorted_weights) - sorted_weights / 2) / math.fsum(weights)
    return float(np.interp(share, reached, sorted_values))
