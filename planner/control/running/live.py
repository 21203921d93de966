"""A ConfigMap that is read while the controller runs: a good edit counts at once, a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from models.controller import ControllerSettings, LiveSettings
from models.observation import Finding
from planner.control.cluster import Api, ClusterFault
from planner.control.cluster.kinds import CONFIG_MAPS
from planner.control.cluster.reading import at
from planner.control.running.configuring import Configuration, configured
from planner.control.running.layering import Layer, text_entry
from planner.errors import ConfigurationError
from planner.errors import Finding as InputFinding
from planner.scenario.tree import Complaints, Entry

__all__ = ["LIVE", "LiveConfiguration"]

LIVE: Final = frozenset(
    {
        "cycle_s", "timeout_s", "trigger_s", "paused", "constrained", "policies", "rules", "overrides", "change_windows",
        "freezes", "maintenance", "leave_cordoned", "respect_manual", "freshness", "waking", "forecasting",
    }
)  # fmt: skip
"""What a ConfigMap may set. Where we act, as whom and through what is for those alone who start the controller."""
_KEPT: Final = "the last good one counts until it is repaired"


class LiveConfiguration:
    """The settings as they are now.

    Args:
        layers: what does not change while the controller runs, the least important first; the ConfigMap goes below
            them all, so that what was fixed at the start stays fixed.
        api: of the cluster with the ConfigMap; None: there is none.
        namespace: of the ConfigMap, where its settings name none.

    Raises:
        ConfigurationError: the layers are wrong; lists everything.
    """

    def __init__(
        self, layers: Sequence[Layer], api: Api | None = None, *, namespace: str = "default"
    ) -> None:
        self._layers = tuple(layers)
        self._api = api
        self._good = configured(self._layers)
        self._live = self._good.settings.live
        self._namespace = namespace
        self._text: str | None = None
        self._finding: Finding | None = None
        self._was_there = False
        self.refused = 0
        self.changes = 0

    @property
    def configuration(self) -> Configuration:
        """The last good ones."""
        return self._good

    @property
    def settings(self) -> ControllerSettings:
        """The last good settings."""
        return self._good.settings

    @property
    def where(self) -> tuple[str, str] | None:
        """Namespace and name of the ConfigMap; None: none is read."""
        live = self._live
        return None if live is None else (live.namespace or self._namespace, live.name)

    def refresh(self) -> tuple[Finding, ...]:
        """Read the ConfigMap again; what is wrong with it is a finding, and counted once for each edit."""
        if self._live is None or self._api is None:
            return ()
        namespace, name = self.where or ("", "")
        try:
            found = self._api.find(CONFIG_MAPS, namespace, name)
        except ClusterFault as fault:
            problem = f"it cannot be read: {fault.message}; its last values stay"
            return (Finding(subject=self._subject, problem=problem[:1000], remedy=fault.remedy),)
        if found is None:
            return self._absent(self._live)
        self._was_there = True
        text = at(found, "data", self._live.key)
        if text != self._text:
            self._text = text
            self._finding = self._take(text, self._live)
        return () if self._finding is None else (self._finding,)

    @property
    def _subject(self) -> str:
        return f"ConfigMap {'/'.join(self.where or ())}"

    def _absent(self, live: LiveSettings) -> tuple[Finding, ...]:
        """One that was deleted leaves its values: they may hold what people rely on."""
        self._text = None
        if not self._was_there:
            problem = f"there is none yet; settings in its entry {live.key} would count"
            return (Finding(subject=self._subject, problem=problem),)
        problem = "it is gone; its last values stay until it is back or the controller starts again"
        return (
            Finding(
                subject=self._subject, problem=problem, remedy="create it again; an empty one sets nothing"
            ),
        )

    def _take(self, text: object, live: LiveSettings) -> Finding | None:
        if text is not None and not isinstance(text, str):
            return self._bad(f"its entry {live.key} is no text")
        if text is None:
            return self._bad(f"it has no entry {live.key}") if self._was_good else None
        complaints = Complaints()
        entry = text_entry(text, file=self._subject, complaints=complaints)
        try:
            layer = self._allowed(entry, complaints)
            good = configured([layer, *self._layers] if layer else self._layers, complaints)
        except ConfigurationError as error:
            return self._bad(" ".join(str(error).split()))
        if good.settings != self._good.settings:
            self.changes += 1
        self._good = good
        return None

    @property
    def _was_good(self) -> bool:
        return any(each.origin.startswith("ConfigMap ") for each in self._good.values())

    def _allowed(self, entry: Entry | None, complaints: Complaints) -> Layer | None:
        if entry is None:
            return None
        for name, each in entry.fields.items():
            if name in ControllerSettings.model_fields and name not in LIVE:
                complaints.add(
                    InputFinding(
                        each.file, each.line, name, "a setting that is not read live",
                        "by a file, a variable or a flag, at the start",
                    )
                )  # fmt: skip
        return Layer(self._subject, entry)

    def _bad(self, problem: str) -> Finding:
        self.refused += 1
        return Finding(subject=self._subject, problem=f"refused: {problem}"[:1000], remedy=_KEPT)
