"""Answers of a Kubernetes API: good ones as objects, others as faults that say what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from planner.control.calling import asked_wait_s
from planner.control.cluster.faults import ClusterFault, Rule, Trouble
from planner.control.cluster.reading import items_of, text_at
from planner.control.cluster.transport import Answer

__all__ = ["fault_of", "object_of"]

_GOOD: Final = range(200, 300)
_LONGEST_WAIT_S: Final = 120.0
_BY_STATUS: Final = {
    400: Trouble.INVALID,
    401: Trouble.UNAUTHENTICATED,
    403: Trouble.DENIED,
    404: Trouble.NOT_FOUND,
    405: Trouble.NOT_FOUND,
    406: Trouble.INVALID,
    409: Trouble.CONFLICT,
    410: Trouble.EXPIRED,
    413: Trouble.INVALID,
    415: Trouble.INVALID,
    422: Trouble.INVALID,
    429: Trouble.BUSY,
}


def object_of(answer: Answer, rule: Rule) -> Mapping[str, Any]:
    """The object of a good answer.

    Raises:
        ClusterFault: the answer is not good, or no object.
    """
    if answer.status not in _GOOD:
        raise fault_of(answer, rule)
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ClusterFault(
            Trouble.GARBLED, f"what came back of {rule.resource} is no object", status=answer.status
        )
    return found


def fault_of(answer: Answer, rule: Rule) -> ClusterFault:
    """The fault that an answer tells of."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    message = _one_line(
        text_at(said, "message", longest=10**6) or answer.body[:300].decode("utf-8", "replace")
    )
    trouble = _BY_STATUS.get(answer.status, Trouble.BUSY if answer.status >= 500 else Trouble.GARBLED)  # noqa: PLR2004
    if trouble is Trouble.CONFLICT and text_at(said, "reason") == "AlreadyExists":
        trouble = Trouble.EXISTS
    if trouble is Trouble.DENIED and _is_no_right(message):
        return ClusterFault(
            trouble, f"denied: {message}; missing rule: {rule}", status=answer.status, rule=rule
        )
    managers = _managers(said)
    more = f"; fields are owned by {managers}" if trouble is Trouble.CONFLICT and managers else ""
    text = f"{rule.verb} {rule.resource}: {answer.status}{f': {message}' if message else ''}{more}"
    return ClusterFault(trouble, text, status=answer.status, after_s=_wait_s(answer))


def _is_no_right(message: str) -> bool:
    """Quotas and admission refuse with 403 too, and no rule helps against them."""
    return "exceeded quota" not in message and "admission webhook" not in message


def _managers(said: object) -> str:
    """Who owns the fields that a server-side apply would have taken."""
    details = said.get("details") if isinstance(said, dict) else None
    causes = details.get("causes") if isinstance(details, dict) else None
    found = [
        f"{text_at(cause, 'field')} ({text_at(cause, 'message')})"
        for cause in items_of(causes)
        if text_at(cause, "reason") == "FieldManagerConflict"
    ]
    return _one_line(", ".join(found[:5]))


def _wait_s(answer: Answer) -> float | None:
    asked_s = asked_wait_s(answer.headers.get("retry-after"))
    return None if asked_s is None else min(asked_s, _LONGEST_WAIT_S)


def _one_line(text: str) -> str:
    """The beginning of a text, without what would steer a terminal."""
    words = " ".join(text.split())
    cut = words if len(words) <= 400 else f"{words[:399]}…"  # noqa: PLR2004 - a sentence
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in cut)
