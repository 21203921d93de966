"""What can go wrong with a call to a Kubernetes API; a refusal names the rule that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from planner.control.cluster.kinds import Kind

__all__ = ["PASSING", "ClusterFault", "Rule", "Trouble"]


class Trouble(StrEnum):
    """Kinds of faults; each asks for something else."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    BUSY = "busy"
    DENIED = "denied"
    UNAUTHENTICATED = "unauthenticated"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    EXISTS = "exists"
    EXPIRED = "expired"
    INVALID = "invalid"
    GARBLED = "garbled"
    CREDENTIALS = "credentials"


PASSING: Final = frozenset({Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.BUSY})
"""Faults that may be gone in a moment."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What RBAC has to allow for one call.

    Attributes:
        kind: of the object.
        verb: ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch`` or ``delete``.
        namespace: where; empty: in the whole cluster.
        subresource: ``scale``, ``status``; empty: the object itself.
        name: of the only object that it is about; empty: all of the kind.
    """

    kind: Kind
    verb: str
    namespace: str = ""
    subresource: str = ""
    name: str = ""

    @property
    def resource(self) -> str:
        """As a rule names it: ``deployments/scale``."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    def as_object(self) -> Mapping[str, Any]:
        """The rule as a Role holds it."""
        named = {"resourceNames": [self.name]} if self.name else {}
        return {
            "apiGroups": [self.kind.group],
            "resources": [self.resource],
            **named,
            "verbs": [self.verb],
        }

    def __str__(self) -> str:
        """One line that can be pasted into a Role or ClusterRole, and says into which."""
        where = (
            f"a Role in namespace {self.namespace} (or a ClusterRole)" if self.namespace else "a ClusterRole"
        )
        named = f', resourceNames: ["{self.name}"]' if self.name else ""
        return f'{{apiGroups: ["{self.kind.group}"], resources: ["{self.resource}"]{named}, verbs: ["{self.verb}"]}} in {where}'


class ClusterFault(Exception):  # noqa: N818 - faults are caught and told, never left to travel
    """A call that did not do what it was to do.

    Attributes:
        trouble: its kind.
        message: one sentence for people, without secrets.
        status: HTTP status; None: there was no answer.
        rule: that RBAC lacks; of ``DENIED`` alone.
        after_s: the server asks to wait so long, s; None: it does not say.
        unsure: it was a write, and nobody knows whether it was done.
    """

    def __init__(
        self,
        trouble: Trouble,
        message: str,
        *,
        status: int | None = None,
        rule: Rule | None = None,
        after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.message = message
        self.status = status
        self.rule = rule
        self.after_s = after_s
        self.unsure = False

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.rule is not None:
            return f"add the rule {self.rule}"
        return _REMEDIES.get(self.trouble, "")


_REMEDIES: Final = {
    Trouble.UNREACHABLE: "is the API server up, and the address of the context right?",
    Trouble.TIMEOUT: "the API server is slow, or something between drops what is sent",
    Trouble.BUSY: "the API server is overloaded, or its priority and fairness holds us back",
    Trouble.UNAUTHENTICATED: "the token or certificate is expired or unknown to this cluster",
    Trouble.CREDENTIALS: "repair the kubeconfig, or name another context",
    Trouble.GARBLED: "is this a Kubernetes API, or does a proxy answer in its place?",
}
