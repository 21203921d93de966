"""Who says what one replica can do: one question, one answer, and what every source is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from models.performance import MeasuredPoint, PerformanceChoice, Rating, RatingQuestion, Unrated
from models.queueing_profile import QueueingProfile

__all__ = ["Knowledge", "ManyAtOnce", "PerformanceSource", "SourceFactory"]


class PerformanceSource(Protocol):
    """Answers rating questions.

    An answer is a :class:`~models.performance.Rating` with its origin (a source gives figures of one
    origin only), or :class:`~models.performance.Unrated`. Where the source cannot tell, the reason is
    ``NO_MEASUREMENT`` or ``PERCENTILE_NOT_MEASURED`` or ``is_open`` is set, and the next source is asked;
    any other reason is final: the variant cannot carry this traffic.
    """

    @property
    def name(self) -> str:
        """As scenarios name it under ``performance.sources``."""

    def rate(self, question: RatingQuestion) -> Rating | Unrated:
        """The largest rate of this request shape inside the promises and the trigger. Pure."""


@runtime_checkable
class ManyAtOnce(Protocol):
    """A source that answers many questions faster together than one by one."""

    def rate_many(self, questions: Sequence[RatingQuestion]) -> Sequence[Rating | Unrated]:
        """Answers in the order of the questions, each as ``rate`` gives it."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What sources are made from.

    Attributes:
        choice: what the scenario says about sources, rows and pessimism.
        profiles: measured points by name of the table, those that the choice allows.
        queueing: queueing parameters of replicas that were calibrated.
    """

    choice: PerformanceChoice = field(default_factory=PerformanceChoice)
    profiles: Mapping[str, tuple[MeasuredPoint, ...]] = field(default_factory=dict)
    queueing: tuple[QueueingProfile, ...] = ()


SourceFactory = Callable[[Knowledge], PerformanceSource]
"""How a source is made; what a name in ``planner.performance.sources`` stands for."""
