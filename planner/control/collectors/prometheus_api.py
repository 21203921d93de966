"""The query API of Prometheus: a question, and an answer that was checked to be one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from planner.clock import Clock
from planner.control.collectors.access import Access, Fault, Trouble
from planner.control.collectors.transport import Connections, Web

if TYPE_CHECKING:
    import httpx

__all__ = ["Answer", "Labels", "PrometheusApi", "Sample", "Series"]

_WARNINGS: Final = 3


class Labels(dict[str, str]):
    """Labels of a series; equal ones of one reading are one object, so whose they are is found once."""

    __slots__ = ("values_of",)
    values_of: dict[str, float] | None
    """Values of the engine that they are of; None: of none."""


Sample = tuple[Labels, float, float]
"""An element of a vector: labels, time of evaluation (s of the epoch), value. Plain, since there are so many."""


class Series(NamedTuple):
    """An element of a matrix: labels, and points (s of the epoch, value)."""

    labels: Labels
    points: list[tuple[float, float]]


Element = TypeVar("Element")


class Answer(NamedTuple, Generic[Element]):
    """What a question brought, and why it may not be whole."""

    result: list[Element]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Element:
    metric: dict[str, str]
    value: tuple[float, float] | None = None
    values: list[tuple[float, float]] | None = None


@dataclass(slots=True)
class _Data:
    resultType: str  # noqa: N815 - as Prometheus writes it
    result: list[_Element]


@dataclass(slots=True)
class _Document:
    status: str
    data: _Data | None = None
    error: str = "it does not say why"
    warnings: list[str] | None = None


@dataclass(slots=True)
class _Names:
    data: list[str]


@dataclass(slots=True)
class _Targets:
    activeTargets: list[dict[str, Any]]  # noqa: N815 - as Prometheus writes it


@dataclass(slots=True)
class _TargetsDocument:
    data: _Targets


_DOCUMENT: Final = TypeAdapter(_Document)
_NAMES: Final = TypeAdapter(_Names)
_TARGETS: Final = TypeAdapter(_TargetsDocument)
_read_labels: Final = TypeAdapter(dict[str, str]).validator.validate_json
_HEAD: Final = re.compile(rb'\{"status":"success","data":\{"resultType":"vector","result":\[\{"metric":')
_END: Final = b'"]}'
_FOOT: Final = re.compile(rb'"\]\}\]\}\}\s*')
_BETWEEN: Final = b'"]},{"metric":'
_VALUE: Final = b',"value":['


class PrometheusApi:
    """Asks questions.

    Args:
        access: where.
        clock: for waits.
        within_s: time for all tries of a question that has no other limit, s.
        transport: in place of the network, for tests.
    """

    def __init__(
        self,
        access: Access,
        clock: Clock,
        *,
        within_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connections = Connections(access, transport=transport)
        self._web = Web(access, clock, self._connections)
        self._clock = clock
        self._within_s = within_s

    def limit(self) -> float:
        """When questions that begin now must be answered, by the clock's monotonic seconds."""
        return self._clock.monotonic_s() + self._within_s

    def query(
        self, question: str, known: dict[bytes, Labels] | None = None, *, end_s: float | None = None
    ) -> Answer[Sample]:
        """The answer as of now, by the clock of the server: ours need not agree with it.

        Args:
            question: in PromQL.
            known: labels read before, by their text; added to.
            end_s: when it must be answered; None: as :meth:`limit` says.

        Raises:
            Fault: there is none.
        """
        limit_s = self.limit() if end_s is None else end_s
        body = self._web.post("/api/v1/query", {"query": question}, end_s=limit_s)
        quick = _quick_vector(body, {} if known is None else known)
        if quick is not None:
            return Answer(quick)
        data, warnings = _checked(body, "vector")
        return Answer([(Labels(each.metric), *each.value) for each in data if each.value], warnings)

    def query_range(self, question: str, *, start_s: float, end_s: float, step_s: float) -> Answer[Series]:
        """The answers between two times (s of the epoch), a step (s) apart.

        Raises:
            Fault: there are none.
        """
        form = {"query": question, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:.3f}"}
        data, warnings = _checked(self._web.post("/api/v1/query_range", form, end_s=self.limit()), "matrix")
        return Answer(
            [
                Series(Labels(each.metric), [point for point in each.values if math.isfinite(point[0])])
                for each in data
                if each.values
            ],
            warnings,
        )

    def names(self, selector: str) -> tuple[str, ...]:
        """Names of the series that a selector finds.

        Raises:
            Fault: it does not say.
        """
        body = self._web.get("/api/v1/label/__name__/values", {"match[]": selector}, end_s=self.limit())
        return tuple(_parsed(_NAMES, body).data)

    def targets(self) -> tuple[Mapping[str, Any], ...]:
        """What is scraped, with the last error of each.

        Raises:
            Fault: it does not say; not every server does.
        """
        body = self._web.get("/api/v1/targets", {"state": "active"}, end_s=self.limit())
        return tuple(_parsed(_TARGETS, body).data.activeTargets)

    def close(self) -> None:
        """Let go of the connections."""
        self._connections.close()


_Parsed = TypeVar("_Parsed")


def _parsed(kind: TypeAdapter[_Parsed], body: bytes) -> _Parsed:
    try:
        return kind.validate_json(body)
    except ValidationError:
        fault = Fault(Trouble.GARBLED, "the answer is not one of Prometheus, or only a part of one")
    raise fault


def _checked(body: bytes, kind: str) -> tuple[list[_Element], tuple[str, ...]]:
    document = _parsed(_DOCUMENT, body)
    if document.status != "success":
        raise Fault(Trouble.REFUSED, f"the question failed: {document.error[:300]}")
    if document.data is None or document.data.resultType != kind:
        raise Fault(Trouble.GARBLED, f"the answer is no {kind}")
    return document.data.result, tuple(each[:200] for each in (document.warnings or [])[:_WARNINGS])


def _quick_vector(body: bytes, known: dict[bytes, Labels]) -> list[Sample] | None:
    """The samples of a vector written as Prometheus writes it; None: it is written otherwise, or has warnings.

    Each question brings the labels of each engine again, and reading them is most of the work: equal texts are read
    once. A quote inside a label is escaped, so what is looked for here cannot stand in one.
    """
    start, end = _HEAD.match(body), body.rfind(_END)
    if start is None or _FOOT.fullmatch(body, end) is None:
        return None
    pieces = body[start.end() : end].split(_BETWEEN)
    at = pieces[0].partition(_VALUE)[2].partition(b',"')[0]
    # All elements of a vector are of one time; one that is not is left to the slow way.
    between = _VALUE + at + b',"'
    samples: list[Sample] = []
    try:
        at_s = float(at)
        for piece in pieces:
            text, found, value = piece.partition(between)
            labels = known.get(text)
            if labels is None:
                if not found:
                    return None
                labels = known[text] = Labels(_read_labels(text))
            samples.append((labels, at_s, float(value)))
    except ValueError:
        return None
    return samples
