"""What was asked of a cluster, counted: by verb and resource, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Final

from planner.control.cluster.faults import Rule, Trouble

__all__ = ["Tally"]

_WRITING: Final = frozenset({"create", "update", "patch", "delete"})
_ASKED: Final = "authorization.k8s.io"
"""Reviews of access are made like objects, and nothing of them is kept."""


class Tally:
    """Counts calls; from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._writes: Counter[str] = Counter()

    def count(self, rule: Rule, trouble: Trouble | None, *, dry_run: bool = False) -> None:
        """Count a call.

        Args:
            rule: what it needed.
            trouble: how it failed; None: it did not.
            dry_run: it kept nothing.
        """
        with self._lock:
            self._calls[rule.verb, rule.resource, trouble or "ok"] += 1
            kept = rule.kind.group != _ASKED and not dry_run
            if rule.verb in _WRITING and trouble is None and kept:
                self._writes[f"{rule.verb} {rule.resource}"] += 1

    @property
    def calls(self) -> Mapping[tuple[str, str, str], int]:
        """By verb, resource and end: ``ok`` or a :class:`~planner.control.cluster.faults.Trouble`."""
        with self._lock:
            return dict(self._calls)

    @property
    def writes(self) -> Mapping[str, int]:
        """Writes that the cluster took, by verb and resource; those that changed nothing there are among them."""
        with self._lock:
            return dict(self._writes)
