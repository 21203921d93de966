"""What is expected of a service until a replica that is ordered now is there."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Ahead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A forecast of one service, or why there is none that counts.

    Attributes:
        namespace: of the service.
        model: that it serves.
        unit: of the rates: ``req/s``, or ``token`` where nobody tells what arrives; empty: neither is known.
        observed: now; None: it is not known.
        expected: what the forecast says, before any limit; None: none counts.
        most: the forecast counts for so many times what is observed at most.
        lead_s: until what is ordered now is there, s.
        method: who foretold it; empty: what is observed counts.
        why_not: why what is observed counts; empty: the forecast does.
    """

    namespace: str
    model: str
    unit: str = ""
    observed: float | None = None
    expected: float | None = None
    most: float = 1.0
    lead_s: float = 0.0
    method: str = ""
    why_not: str = ""

    @property
    def growth(self) -> float:
        """How many times what is observed is planned for; never below 1, and 1 where nothing is observed."""
        if not self.expected or not self.observed:
            return 1.0
        return min(max(1.0, self.most), max(1.0, self.expected / self.observed))

    @property
    def wakes(self) -> bool:
        """Whether a request is expected before a replica that is ordered now is there, so that none should sleep."""
        return self.unit == "req/s" and self.expected is not None and self.expected * self.lead_s >= 1.0

    @property
    def said(self) -> str:
        """Who foretold it, or why nobody is believed."""
        return self.method or self.why_not
