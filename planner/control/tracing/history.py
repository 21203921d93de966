"""Records as a history: what every variant was to have over time, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from models.cycle_record import CycleRecord

__all__ = ["Moment", "history_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What one variant was to have from one moment on.

    Attributes:
        at_s: seconds of the epoch.
        variant: namespace and name, with the cluster where it has a name.
        desired: replicas.
        before: replicas that were asked for until then.
        reason: one word.
        message: one sentence.
    """

    at_s: float
    variant: str
    desired: int
    before: int
    reason: str
    message: str


def history_of(records: Iterable[CycleRecord], *, most: int) -> tuple[Moment, ...]:
    """What variants were to have, by time; of many variants those that moved most.

    Args:
        records: from the oldest on.
        most: variants at most.
    """
    found: list[Moment] = []
    moved: Counter[str] = Counter()
    for record in records:
        for row in record.decisions:
            if row.desired is None:
                continue
            name = "/".join(part for part in row.key if part)
            before = row.desired if row.before is None else row.before
            moved[name] += abs(row.desired - before)
            found.append(
                Moment(
                    at_s=record.at_s,
                    variant=name,
                    desired=row.desired,
                    before=before,
                    reason=row.reason,
                    message=row.message,
                )
            )
    shown = {name for name, _ in sorted(moved.items(), key=lambda item: (-item[1], item[0]))[:most]}
    return tuple(each for each in found if each.variant in shown)
