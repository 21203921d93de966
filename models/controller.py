"""What a controller is told: its settings, and the rules of services with overrides by what they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from models.autoscaling import ScalingBounds
from models.ids import Name
from models.observation import FreshnessLimits, VariantObservation
from models.people import ChangeWindow, Maintenance, Who
from models.saturation import Headroom, SaturationThresholds
from models.units import Count, PositiveCount, PositiveSeconds, Ratio, Seconds, Share
from models.value import Value

__all__ = [
    "ControllerSettings",
    "Extension",
    "ForecastSettings",
    "LeaseSettings",
    "LiveSettings",
    "Override",
    "RecordSettings",
    "Rules",
    "ServerSettings",
    "Sharding",
    "WakingSettings",
]

Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]

_FEWEST_STEPS, _MOST_STEPS = 10, 50_000


class Extension(Value):
    """A plug-in and what it is told; each checks its own options."""

    name: Name = Field(description="of its group, e.g. prometheus, kubernetes, gauge")
    options: Mapping[str, Any] = Field({}, description="as it documents them")


class Rules(Value):
    """How one service is judged and moved: γ says whether, δ how far; defaults as llm-d's autoscaler ships them."""

    policy: Name = Field(
        "wva-v2", description="who decides: wva (percentages), wva-v2 (tokens), planner, or a plug-in's name"
    )
    tau_kv: Share = Field(0.80, gt=0, description="KV-cache usage at which a replica is saturated")
    tau_queue: Ratio = Field(5.0, description="waiting requests at which a replica is saturated")
    gamma_kv: Share = Field(0.10, description="mean KV distance to tau_kv below which scale-up starts")
    gamma_queue: Ratio = Field(
        3.0, description="mean queue distance to tau_queue below which scale-up starts"
    )
    min_non_saturated: Count = Field(
        2, description="no scale-in starts while fewer replicas are non-saturated"
    )
    up: Share = Field(0.85, gt=0, description="demand / capacity above which capacity is missing (tokens)")
    down: Share = Field(0.70, gt=0, description="demand / capacity that is left after replicas went (tokens)")
    delta: Headroom = Field(Headroom(), description="capacity kept free above the load once a service moves")
    step_up: Count = Field(0, description="replicas added to a variant in one cycle at most; 0: no limit")
    step_down: Count = Field(0, description="replicas taken from a variant in one cycle at most; 0: no limit")
    dead_band: Share = Field(
        0.0, description="change, as a share of the replicas, that is too small to be made"
    )
    stabilize_up_s: Seconds = Field(0.0, le=3600, description="the lowest wish of so long is followed up, s")
    stabilize_down_s: Seconds = Field(
        300.0, le=3600, description="the highest wish of so long is followed down, s"
    )
    priority: Ratio = Field(1.0, description="where accelerators are few; larger is more important")
    scale_to_zero: bool = Field(
        False, description="a service that nobody uses may have no replica (minimum 0 too)"
    )
    retention_s: PositiveSeconds = Field(600.0, le=86_400, description="nobody used it for so long, s")
    stuck_s: PositiveSeconds = Field(
        120.0,
        le=86_400,
        description="nothing arrives and no token is made for so long: what waits is stuck, s",
    )
    ttft_s: PositiveSeconds | None = Field(
        None, description="time to first token that is promised, s; None: none"
    )
    itl_s: PositiveSeconds | None = Field(
        None, description="inter-token latency that is promised, s; None: none"
    )
    forecast: bool = Field(False, description="demand is what comes until a replica started now is there")
    forecast_quantile: Share = Field(0.9, gt=0, description="of the forecast that is planned for")
    forecast_season_s: PositiveSeconds = Field(
        86_400.0, ge=60, le=2_678_400, description="after so long demand is as before, s"
    )
    forecast_lead_s: PositiveSeconds | None = Field(
        None,
        le=86_400,
        description="until what is ordered now is there, s; None: as long as its slowest variant was seen to start",
    )
    forecast_most: Ratio = Field(
        4.0, ge=1, le=1000, description="a forecast counts for so many times what is observed at most"
    )
    paused: bool = Field(False, description="people asked that nothing is changed")

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.gamma_kv >= self.tau_kv:
            raise ValueError(f"gamma_kv {self.gamma_kv:g} must be less than tau_kv {self.tau_kv:g}")
        if self.gamma_queue > self.tau_queue:
            raise ValueError(f"gamma_queue {self.gamma_queue:g} must not exceed tau_queue {self.tau_queue:g}")
        if self.down >= self.up:
            raise ValueError(f"down {self.down:g} must be less than up {self.up:g}")
        return self

    @property
    def thresholds(self) -> SaturationThresholds:
        """τ and γ."""
        return SaturationThresholds(
            tau_kv=self.tau_kv,
            tau_queue=self.tau_queue,
            gamma_kv=self.gamma_kv,
            gamma_queue=self.gamma_queue,
            min_non_saturated_for_scale_in=self.min_non_saturated,
        )

    @property
    def bounds(self) -> ScalingBounds:
        """Of the threshold step."""
        return ScalingBounds(up=self.up, down=self.down)


class Override(Who):
    """Other rules for some variants; what is None stays as it was."""

    policy: Name | None = Field(None, description="see rules")
    tau_kv: Share | None = Field(None, gt=0, description="see rules")
    tau_queue: Ratio | None = Field(None, description="see rules")
    gamma_kv: Share | None = Field(None, description="see rules")
    gamma_queue: Ratio | None = Field(None, description="see rules")
    min_non_saturated: Count | None = Field(None, description="see rules")
    up: Share | None = Field(None, gt=0, description="see rules")
    down: Share | None = Field(None, gt=0, description="see rules")
    delta: Headroom | None = Field(None, description="see rules")
    step_up: Count | None = Field(None, description="see rules")
    step_down: Count | None = Field(None, description="see rules")
    dead_band: Share | None = Field(None, description="see rules")
    stabilize_up_s: Seconds | None = Field(None, le=3600, description="see rules")
    stabilize_down_s: Seconds | None = Field(None, le=3600, description="see rules")
    priority: Ratio | None = Field(None, description="see rules")
    scale_to_zero: bool | None = Field(None, description="see rules")
    retention_s: PositiveSeconds | None = Field(None, le=86_400, description="see rules")
    stuck_s: PositiveSeconds | None = Field(None, le=86_400, description="see rules")
    ttft_s: PositiveSeconds | None = Field(None, description="see rules")
    itl_s: PositiveSeconds | None = Field(None, description="see rules")
    forecast: bool | None = Field(None, description="see rules")
    forecast_quantile: Share | None = Field(None, gt=0, description="see rules")
    forecast_season_s: PositiveSeconds | None = Field(None, ge=60, le=2_678_400, description="see rules")
    forecast_lead_s: PositiveSeconds | None = Field(None, le=86_400, description="see rules")
    forecast_most: Ratio | None = Field(None, ge=1, le=1000, description="see rules")
    paused: bool | None = Field(None, description="see rules")

    @property
    def changes(self) -> dict[str, Any]:
        """The rules that are other."""
        given = {name: getattr(self, name) for name in Rules.model_fields}
        return {name: value for name, value in given.items() if value is not None}


class Sharding(Value):
    """Several controllers, each with services of its own; two ways that may be combined."""

    instance: Label | None = Field(
        None,
        description="only scalers with this label wva.llmd.ai/controller-instance; None: whatever they carry",
    )
    shards: PositiveCount = Field(
        1, le=1000, description="controllers that share services by hash of namespace/model"
    )
    shard: Count = Field(0, description="which of them this is, from 0")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.shard >= self.shards:
            raise ValueError(f"shard {self.shard} of {self.shards}; allowed: 0 to {self.shards - 1}")
        return self


class LeaseSettings(Value):
    """How one of several controllers of a shard is chosen (coordination.k8s.io Lease)."""

    enabled: bool = Field(True, description="off: this one always leads; for trials outside of a cluster")
    name: Name = Field("fleetplan", max_length=200, description="of the Lease; the shard is added to it")
    namespace: Name | None = Field(None, description="of the Lease; None: that we run in, else default")
    lease_s: PositiveSeconds = Field(
        15.0, ge=1, le=3600, description="a leader that is silent for so long is replaced, s"
    )
    renew_s: PositiveSeconds = Field(
        10.0, le=3600, description="a leader that could not renew for so long stops, s"
    )
    retry_s: PositiveSeconds = Field(2.0, le=600, description="between two tries, s")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.retry_s < self.renew_s < self.lease_s:
            raise ValueError(
                f"retry_s {self.retry_s:g} < renew_s {self.renew_s:g} < lease_s {self.lease_s:g} must hold, "
                "or two might lead at once"
            )
        return self


class RecordSettings(Value):
    """Where decisions are written down: JSON lines in files that follow one another."""

    folder: Path | None = Field(None, description="where; None: nowhere, the last ones are kept in memory")
    most_bytes: PositiveCount = Field(
        16 * 2**20, le=2**40, description="a file that is longer is followed by the next"
    )
    files: PositiveCount = Field(10, le=10_000, description="files that are kept, the oldest goes first")
    heartbeat_s: PositiveSeconds = Field(
        300.0, description="a cycle without a decision is written so often, s"
    )
    events: bool = Field(True, description="Kubernetes events too, when a decision or its reason changes")


class ServerSettings(Value):
    """The controller's own server: /metrics, /healthz, /readyz, /status."""

    host: Name = Field("127.0.0.1", description="address that is listened on")
    port: Count = Field(9470, le=65_535, description="port; 0: any that is free")
    cert_file: Path | None = Field(None, description="certificate (PEM); None: no TLS")
    key_file: Path | None = Field(None, description="its key (PEM); None: in the file of the certificate")
    token_file: Path | None = Field(
        None, description="bearer token for /metrics and /status; None: anybody may read"
    )

    @model_validator(mode="after")
    def _key_has_a_certificate(self) -> Self:
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("key_file without cert_file; allowed: both, or neither")
        return self


class LiveSettings(Value):
    """A ConfigMap that is read while the controller runs."""

    name: Name = Field("fleetplan-controller", description="of the ConfigMap")
    namespace: Name | None = Field(None, description="its namespace; None: that we run in, else default")
    key: Name = Field("controller.yaml", description="entry that holds the settings, as the file does")


class WakingSettings(Value):
    """Services without replicas are looked after more often than every cycle."""

    enabled: bool = Field(True, description="whether a queue wakes a service at zero")
    every_s: PositiveSeconds = Field(0.1, ge=0.01, le=60, description="between two looks at the queues, s")


class ForecastSettings(Value):
    """What is kept of the past for forecasts, and how long a cycle may work on them."""

    step_s: PositiveSeconds = Field(60.0, ge=10, le=3600, description="means over so long are kept, s")
    history_s: PositiveSeconds = Field(
        259_200.0, le=10_368_000, description="so far back; two seasons at least, s"
    )
    budget_s: PositiveSeconds = Field(
        0.2, le=60, description="of a cycle; services take turns where it is too short, s"
    )

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        steps = self.history_s / self.step_s
        if not _FEWEST_STEPS <= steps <= _MOST_STEPS:
            raise ValueError(
                f"history_s {self.history_s:g} is {steps:,.0f} steps of step_s {self.step_s:g}; "
                f"allowed: {_FEWEST_STEPS} to {_MOST_STEPS:,}"
            )
        return self


class ControllerSettings(Value):
    """Everything that a controller is told."""

    cycle_s: PositiveSeconds = Field(15.0, ge=1, le=3600, description="between two cycles, s")
    timeout_s: PositiveSeconds = Field(
        60.0, le=3600, description="a cycle that takes longer changes nothing, s"
    )
    trigger_s: PositiveSeconds = Field(
        2.0, le=3600, description="an event starts a cycle, but not sooner after the last, s"
    )
    act: bool = Field(False, description="carry decisions out; off: a dry run that tells what it would do")
    paused: bool = Field(False, description="people asked that nothing at all is changed")
    constrained: bool = Field(True, description="growth is bounded by accelerators and quotas that there are")
    namespaces: tuple[Name, ...] = Field((), description="whose variants are ours; empty: all")
    exclude: tuple[Name, ...] = Field((), description="namespaces whose variants are not ours")
    clusters: tuple[Mapping[str, Any], ...] = Field(
        (),
        max_length=100,
        description="where clusters are (name, kubeconfig, context, in_cluster, ...); empty: the one at hand",
    )
    sources: tuple[Extension, ...] = Field(
        (), description="where metrics are from; their readings are joined"
    )
    discovery: Extension = Field(
        Extension(name="kubernetes"), description="where variants and accelerators are from"
    )
    policies: Mapping[Name, Mapping[str, Any]] = Field({}, description="options of policies, by name")
    actuators: tuple[Extension, ...] = Field(
        (Extension(name="gauge"),), description="who carries decisions out, in this order"
    )
    rules: Rules = Field(Rules(), description="of every service, where no override says otherwise")
    overrides: tuple[Override, ...] = Field(
        (),
        max_length=10_000,
        description="the more exact goes before the less exact, the later before the earlier",
    )
    change_windows: tuple[ChangeWindow, ...] = Field(
        (), description="changes are made inside of these alone; empty: always"
    )
    freezes: tuple[ChangeWindow, ...] = Field((), description="inside of these no change is made")
    maintenance: tuple[Maintenance, ...] = Field((), description="nodes that will be away")
    leave_cordoned: bool = Field(
        True, description="cordoned nodes are left as if their maintenance had begun"
    )
    respect_manual: bool = Field(
        True, description="replicas that people set by hand stay until they are released"
    )
    forecasting: ForecastSettings = Field(
        ForecastSettings(), description="how services with a forecast are foretold"
    )
    freshness: FreshnessLimits = Field(FreshnessLimits(), description="how old metrics may be")
    sharding: Sharding = Field(Sharding(), description="which services are ours")
    lease: LeaseSettings = Field(LeaseSettings(), description="who leads")
    live: LiveSettings | None = Field(None, description="a ConfigMap that is read live; None: none")
    records: RecordSettings = Field(RecordSettings(), description="what is written down")
    server: ServerSettings = Field(ServerSettings(), description="where it can be asked")
    waking: WakingSettings = Field(WakingSettings(), description="how services at zero wake")

    @model_validator(mode="after")
    def _overrides_fit(self) -> Self:
        faults = []
        for place, each in enumerate(self.overrides):
            try:
                self.rules.but(**each.changes)
            except ValueError as cause:
                said = next(iter(getattr(cause, "errors", list)()), {"msg": str(cause)})["msg"]
                faults.append(f"overrides[{place}]: {str(said).removeprefix('Value error, ')}")
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @model_validator(mode="after")
    def _seasons_are_kept(self) -> Self:
        faults = []
        named: list[tuple[str, Rules | Override]] = [("rules", self.rules)]
        named += [(f"overrides[{n}]", each) for n, each in enumerate(self.overrides)]
        for place, each in named:
            foretold = self.rules.forecast if each.forecast is None else each.forecast
            season_s = each.forecast_season_s or self.rules.forecast_season_s
            if foretold and 2 * season_s > self.forecasting.history_s:
                faults.append(
                    f"{place}: forecast_season_s {season_s:g} twice is more than forecasting.history_s "
                    f"{self.forecasting.history_s:g}: nothing could be tried on the past"
                )
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def rules_of(self, variant: VariantObservation) -> Rules:
        """The rules of one variant: those of all, and over them every override that covers it."""
        return self.rules_under(each for each in self.overrides if each.covers(variant))

    def rules_under(self, overrides: Iterable[Override]) -> Rules:
        """The rules with these overrides on top, the less exact first; a set that does not fit together is left out.

        Two overrides may fit the rules of all and not one another (one lowers τ, one raises γ): the less exact one yields.
        """
        changes: dict[str, Any] = {}
        found = self.rules
        for each in sorted(overrides, key=lambda one: one.exactness):
            changes |= each.changes
            try:
                found = self.rules.but(**changes)
            except ValueError:
                changes = dict(each.changes)
                found = self.rules.but(**changes)
        return found
