"""Load points -> queueing parameters of one LLM on one accelerator type, or the measurement that is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.calibration import Calibration, FittedPoint, LeftOut
from models.load import LatencySpread, LoadPoint
from models.queueing import FitInterval, FitQuality, QueueingForm
from models.queueing_profile import QueueingProfile
from planner.calibration.design import PARAMETERS, Design, design_of, loads_of
from planner.calibration.fitting import Fit, Observations, fit_parameters
from planner.calibration.identifying import Identity, best_next_load, identity_of
from planner.calibration.usable import batch_seen, reasons_against
from planner.errors import ConfigurationError, Finding

__all__ = ["FitOptions", "calibrate"]

Floats = NDArray[np.float64]

_FEWEST: Final = 3
_OUTLIER: Final = 4.0
_UNEXPLAINED: Final = 0.5
_WORDS: Final = dict(zip(PARAMETERS, ("alpha", "beta", "gamma"), strict=True))
_MEANINGS: Final = {
    "alpha_ms": "time of an iteration with nothing in it",
    "beta_ms_per_token": "time per computed token",
    "gamma_ms_per_token": "time per token read from the KV cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How to fit.

    Attributes:
        form: which published form of the model.
        max_batch: requests that the engine serves at once (max_num_seqs); None: the default of the parameters.
        chunk_tokens: tokens of one iteration (max_num_batched_tokens).
        resamples: repeated fits for the intervals.
        seed: of the resampling.
    """

    form: QueueingForm = QueueingForm.ITERATIONS
    max_batch: int | None = None
    chunk_tokens: int = 8192
    resamples: int = 200
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Data:
    """Points that are fitted with their lines, and which of them state which latency; seconds of shape (points,)."""

    points: tuple[LoadPoint, ...]
    design: Design
    itl: Floats
    ttft: Floats

    def observations(self, *, ttft: bool, of: NDArray[np.intp] | None = None) -> Observations:
        """What was seen of some points (None: of all), with times to first token or without."""
        chosen = np.arange(len(self.points)) if of is None else of
        itl, first = self.itl[chosen], self.ttft[chosen] - self.design.waited_s[chosen]
        has_itl, has_first = itl > 0, first > 0
        lines = [self.design.itl[chosen][has_itl]]
        seconds = [itl[has_itl]]
        if ttft:
            lines.append(self.design.ttft[chosen][has_first])
            seconds.append(first[has_first])
        return Observations(np.vstack(lines), np.concatenate(seconds))


def calibrate(
    points: Sequence[LoadPoint], known: QueueingProfile, *, options: FitOptions | None = None
) -> Calibration:
    """Fit alpha, beta and gamma to what one kind of replica did under load.

    Args:
        points: load levels of one LLM on one accelerator type.
        known: what the parameters will be known for; its parameters are replaced, its limits kept.
        options: how to fit.

    Raises:
        ConfigurationError: no usable point, or the data cannot tell a parameter; says which, and which
            measurement would.
    """
    options = options or FitOptions()
    against = reasons_against(points, max_batch=options.max_batch)
    good = tuple(point for point, reason in zip(points, against, strict=True) if reason is None)
    _check_there_are(good, against, known)
    data = _data(good, options)
    fit, identity, used_ttft = _fitted(data)
    if identity.unknown or len(good) < _FEWEST:
        raise _not_identified(data, fit, identity, known, options)
    intervals = _intervals(data, fit, ttft=used_ttft, options=options)
    parameters = known.parameters.but(
        form=options.form,
        chunk_tokens=options.chunk_tokens,
        **({} if options.max_batch is None else {"max_batch": options.max_batch}),
        **{name: float(value) for name, value in zip(PARAMETERS, fit.theta, strict=True)},
    )
    fitted = _points(points, against, data, fit)
    profile = known.but(parameters=parameters, fit=_quality(fitted, intervals, ttft=used_ttft))
    return Calibration(
        profile=profile,
        points=fitted,
        condition=identity.condition,
        ttft_was_used=used_ttft,
        notes=tuple(_notes(good, data, fit, used_ttft, options)),
    )


def _check_there_are(
    good: Sequence[LoadPoint], against: Sequence[LeftOut | None], known: QueueingProfile
) -> None:
    if good:
        return
    counts = {reason: against.count(reason) for reason in LeftOut if reason in against}
    said = (
        ", ".join(f"{count} {reason.value.replace('_', ' ')}" for reason, count in counts.items()) or "none"
    )
    found = f"no load level of a replica that keeps up ({said}), so that alpha, beta and gamma cannot be told"
    allowed = "runs below saturation: concurrency 1, and several up to where throughput stops growing"
    raise ConfigurationError.from_findings([Finding("", None, _whose(known), found, allowed)])


def _data(points: tuple[LoadPoint, ...], options: FitOptions) -> _Data:
    design = design_of(loads_of(points), form=options.form, chunk_tokens=options.chunk_tokens)
    return _Data(points, design, _seconds([p.itl for p in points]), _seconds([p.ttft for p in points]))


def _seconds(spreads: Sequence[LatencySpread | None]) -> Floats:
    """Means (else medians) in s; 0 where nothing is stated."""
    return np.array([(spread.typical_s if spread is not None else None) or 0.0 for spread in spreads])


def _fitted(data: _Data) -> tuple[Fit, Identity, bool]:
    """The fit, how well it is identified, and whether times to first token were used.

    Bursts of arrivals and queues that nobody recorded make times to first token longer than any replica's own. Where
    times between tokens identify everything alone, and what they say explains less than half of the
    first-token times, those are not fitted.
    """
    both = data.observations(ttft=True)
    if len(both) == 0:
        found = "no mean and no median of TTFT or ITL"
        raise ConfigurationError.from_findings([Finding("", None, "", found, "a report with latencies")])
    alone = data.observations(ttft=False)
    if len(alone) >= _FEWEST:
        fit = fit_parameters(alone)
        identity = identity_of(alone.lines, fit.theta, noise=fit.noise)
        if not identity.unknown and _is_unexplained(data, fit.theta):
            return fit, identity, False
    fit = fit_parameters(both)
    return fit, identity_of(both.lines, fit.theta, noise=fit.noise), len(both) > len(alone)


def _is_unexplained(data: _Data, theta: Floats) -> bool:
    stated = data.ttft > 0
    if not stated.any():
        return True
    modeled = data.design.ttft[stated] @ theta + data.design.waited_s[stated]
    return bool(np.median(np.abs(modeled / data.ttft[stated] - 1)) > _UNEXPLAINED)


def _intervals(data: _Data, fit: Fit, *, ttft: bool, options: FitOptions) -> dict[str, FitInterval]:
    """95 % intervals of refits on resampled points (Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13)."""
    source = np.random.default_rng(options.seed)
    count = len(data.points)
    found = []
    for _ in range(options.resamples):
        seen = data.observations(ttft=ttft, of=source.integers(count, size=count))
        if len(seen) >= _FEWEST:
            found.append(fit_parameters(seen, near=fit.theta).theta)
    low, high = np.percentile(np.array(found), (2.5, 97.5), axis=0)
    return {
        name: FitInterval(low=float(min(low[k], fit.theta[k])), high=float(max(high[k], fit.theta[k])))
        for k, name in enumerate(PARAMETERS)
    }


def _points(
    points: Sequence[LoadPoint], against: Sequence[LeftOut | None], data: _Data, fit: Fit
) -> tuple[FittedPoint, ...]:
    modeled = iter(
        zip(
            data.design.itl @ fit.theta,
            data.design.ttft @ fit.theta + data.design.waited_s,
            data.design.batch / (data.design.service @ fit.theta),
            strict=True,
        )
    )
    bound = _OUTLIER * max(fit.noise, 0.02)
    found = []
    for point, reason in zip(points, against, strict=True):
        itl, ttft, rate = next(modeled) if reason is None else (None, None, None)
        seen_itl = point.itl.typical_s if point.itl is not None else None
        far = (
            itl is not None and seen_itl is not None and seen_itl > 0 and abs(np.log(itl / seen_itl)) > bound
        )
        replicas = point.origin.replicas or 1
        found.append(
            FittedPoint(
                place=" ".join(part for part in (point.origin.file, point.origin.place) if part),
                input_tokens=point.input_tokens,
                output_tokens=point.output_tokens,
                in_service=batch_seen(point),
                itl_s=seen_itl,
                itl_fitted_s=itl,
                ttft_s=point.ttft.typical_s if point.ttft is not None else None,
                ttft_fitted_s=ttft,
                rps=point.achieved_rps / replicas,
                rps_fitted=rate,
                left_out=reason,
                outlier=bool(far),
            )
        )
    return tuple(found)


def _quality(points: Sequence[FittedPoint], intervals: dict[str, FitInterval], *, ttft: bool) -> FitQuality:
    used = [point for point in points if point.left_out is None]
    return FitQuality(
        points=len(used),
        itl_error=_error([(point.itl_s, point.itl_fitted_s) for point in used]),
        ttft_error=_error([(point.ttft_s, point.ttft_fitted_s) for point in used]) if ttft else None,
        rps_error=_error([(point.rps, point.rps_fitted) for point in used]),
        **intervals,
    )


def _error(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Mean absolute relative error of modeled against seen; None: nothing was seen."""
    errors = [abs(modeled / seen - 1) for seen, modeled in pairs if seen and modeled is not None]
    return float(np.mean(errors)) if errors else None


def _not_identified(
    data: _Data, fit: Fit, identity: Identity, known: QueueingProfile, options: FitOptions
) -> ConfigurationError:
    loads = loads_of(data.points)
    design = partial(design_of, form=options.form, chunk_tokens=options.chunk_tokens)
    best = best_next_load(design, data.observations(ttft=True).lines, fit.theta, loads=loads)
    need = (
        f"a run with about {best.load.input_tokens:.0f} input and {best.load.output_tokens:.0f} output tokens "
        f"at concurrency {best.load.batch:.0f}"
    )
    batches = sorted({round(load.batch) for load in loads})
    shapes = sorted({point.shape for point in data.points})
    there = f"batches {_some(batches)}, lengths {_some([f'{i}/{o}' for i, o in shapes])}"
    names = identity.unknown or PARAMETERS
    findings = [
        Finding(
            "",
            None,
            f"{_whose(known)}: {_WORDS[name]}",
            f"not told by these data ({there}): {_MEANINGS[name]}",
            need,
        )
        for name in names
    ]
    return ConfigurationError("the data cannot identify every parameter", findings=findings)


def _some(items: Sequence[object]) -> str:
    shown = ", ".join(str(item) for item in items[:6])
    return shown if len(items) <= 6 else f"{shown}, ..."  # noqa: PLR2004 - a line's worth


def _whose(known: QueueingProfile) -> str:
    return f"{known.llm} on {known.accelerator}"


def _notes(
    good: Sequence[LoadPoint], data: _Data, fit: Fit, used_ttft: bool, options: FitOptions
) -> list[str]:
    notes = []
    stated = data.ttft > 0
    if not used_ttft and stated.any():
        ratio = float(
            np.median(
                data.ttft[stated] / (data.design.ttft[stated] @ fit.theta + data.design.waited_s[stated])
            )
        )
        notes.append(
            f"times to first token were not fitted: they are {ratio:.1f} times what the replica needs alone, "
            "as bursts of arrivals and unrecorded queues make them"
        )
    if len({point.shape for point in good}) == 1:
        notes.append("one request shape only: beta and gamma are told apart by times to first token alone")
    if any(
        spread is not None and spread.mean_s is None for point in good for spread in (point.itl, point.ttft)
    ):
        notes.append("medians stand for means where a report states no mean")
    if any(point.origin.replicas is None for point in good):
        notes.append("a report that does not say how many replicas shared the load is taken for one replica")
    if options.max_batch is None:
        notes.append("max_batch is not from the data: give --max-batch, the engine's max_num_seqs")
    return notes
