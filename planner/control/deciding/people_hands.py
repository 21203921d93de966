"""Replicas that people set by hand: how they are told from those of controllers, and how they are released."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from models.observation import VariantObservation
from planner.control.analysis.identity import VariantRef, ref_of

__all__ = ["Edit", "Hands", "Seen", "hands_after", "held_note"]

_CONTROLLERS: Final = (
    "fleetplan", "kube-controller-manager", "horizontal-pod-autoscaler", "keda", "cluster-autoscaler", "hpa",
)  # fmt: skip
"""Field managers that are no people, by how their names begin. Whoever applies manifests stands for people: a count that
Helm or a GitOps tool writes is one that people keep in a file."""


class Seen(NamedTuple):
    """A replica count, and who wrote it last as the API tells."""

    wanted: int
    by: str
    at: str


class Edit(NamedTuple):
    """A count that somebody changed who is none of ours."""

    variant: VariantObservation
    before: int
    by: str

    @property
    def note(self) -> str:
        """As the annotation says it."""
        return held_note(self.variant, self.by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What is known between two cycles.

    Attributes:
        seen: counts as they were seen last, or written by us since.
        notes: variants that are held without an annotation, with what it would say: it could not be written.
        noted: variants whose annotation was seen.
    """

    seen: Mapping[VariantRef, Seen] = field(default_factory=dict)
    notes: Mapping[VariantRef, str] = field(default_factory=dict)
    noted: tuple[VariantRef, ...] = ()

    def wrote(self, counts: Mapping[VariantRef, int]) -> Hands:
        """The same after we wrote these counts."""
        seen = dict(self.seen)
        for ref, count in counts.items():
            if ref in seen:
                seen[ref] = seen[ref]._replace(wanted=count)
        return replace(self, seen=seen)

    def could_not_note(self, edits: Iterable[Edit]) -> Hands:
        """The same where these edits could not be written down in the cluster."""
        return replace(self, notes={**self.notes, **{ref_of(one.variant): one.note for one in edits}})


def hands_after(
    variants: Iterable[VariantObservation], hands: Hands, *, ours: Collection[VariantRef]
) -> tuple[Hands, tuple[Edit, ...], tuple[VariantObservation, ...]]:
    """What people did since the last cycle.

    A count that changed is theirs where the API names them as its newest writer, or where we alone write it (``ours``)
    and did not. What an HPA or KEDA scales changes by itself, and APIs before 1.22 do not say who wrote through the scale
    subresource; there a change without a name is not taken for one by hand. The first cycle has nothing to compare with:
    counts are as they are.

    Args:
        variants: as they are now.
        hands: of the cycle before.
        ours: variants whose count nobody but us writes.

    Returns:
        The state for the next cycle, changes by hand, and variants that were released: their annotation is gone.
    """
    seen, notes, noted = {}, {}, set()
    edits: list[Edit] = []
    released: list[VariantObservation] = []
    for variant in variants:
        ref = ref_of(variant)
        if variant.wanted is None:
            continue
        now = Seen(variant.wanted, variant.written_by, variant.written_at)
        before = hands.seen.get(ref)
        seen[ref] = now
        if variant.held:
            noted.add(ref)
        elif ref in hands.noted:
            released.append(variant)
        elif before is not None and _by_hand(before, now, ours=ref in ours):
            edits.append(Edit(variant, before.wanted, _who(before, now)))
        elif ref in hands.notes:
            notes[ref] = hands.notes[ref]
    return Hands(seen=seen, notes=notes, noted=tuple(sorted(noted))), tuple(edits), tuple(released)


def held_note(variant: VariantObservation, by: str) -> str:
    """Who holds a count, and how to release it."""
    kind, name = variant.target.kind.lower(), variant.target.name
    release = f"kubectl annotate {kind}/{name} -n {variant.namespace} fleetplan.dev/held-"
    return f"{variant.wanted} replicas set by {by}; to release: {release}"


def _by_hand(before: Seen, now: Seen, *, ours: bool) -> bool:
    if now.wanted == before.wanted:
        return False
    told = (now.by, now.at) != (before.by, before.at) and now.by
    return not now.by.startswith(_CONTROLLERS) if told else ours


def _who(before: Seen, now: Seen) -> str:
    told = (now.by, now.at) != (before.by, before.at)
    return f"{now.by} at {now.at}" if told and now.by else "somebody whom the API does not name"
