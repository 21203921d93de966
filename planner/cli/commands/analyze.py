"""``analyze``: an observation judged, and what each policy would decide on it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from planner.cli.commands.observe import ObserveOptions, observation_output, seen_by
from planner.cli.edge import ExitCode
from planner.cli.terminal import note, out_console
from planner.errors import ConfigurationError, Finding, nearest

if TYPE_CHECKING:
    from models.controller import ControllerSettings
    from models.observation import Observation
    from planner.control.deciding import Decided
    from planner.saturation import SaturationSignal

__all__ = ["AnalyzeOptions", "RoleSaturation", "analyze", "decide_by", "saturation_of"]

_PUBLISHED: Final = ("wva", "wva-v2", "planner")
"""Policies that are asked where nobody names one."""


@dataclass(frozen=True, kw_only=True)
class AnalyzeOptions(ObserveOptions):
    """Options of ``analyze``."""

    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", show_default=False, help="What this policy would decide; repeatable. Default: that of the settings, else wva, wva-v2 and planner."),
    ] = None  # fmt: skip
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", show_default=False, help="Settings of a controller: thresholds, overrides, windows."),
    ] = None  # fmt: skip


class RoleSaturation(NamedTuple):
    """How full the replicas of one role of one service are."""

    namespace: str
    model: str
    role: str
    signal: SaturationSignal


def analyze(options: AnalyzeOptions) -> ExitCode:
    """Judge what is observed: demand, capacity and verdict of every service and role, and what policies would decide.

    It looks once: rules that count on what was before (stabilization, throughput) have nothing to count on. Nothing is
    changed. Exit code 4 when a source did not answer in full.
    """
    output = observation_output(options)
    if output is not None:
        output.check()
    settings = _settings(options.settings)
    names = _policies(options, settings)
    seen, _ = seen_by(options)
    saturation = saturation_of(seen, settings)
    decided = decide_by(seen, settings, names)
    if output is not None:
        output.write(f"{seen.canonical_json()}\n")
    if options.as_json:
        sys.stdout.write(
            f"{json.dumps(analysis_object(seen, saturation, decided), indent=2, ensure_ascii=False)}\n"
        )
    else:
        from planner.cli.screen.analysis import show_analysis

        show_analysis(out_console(), seen, saturation, decided, every=options.every)
    if output is not None and not output.on_stdout:
        note(f"wrote {output.path}")
    return ExitCode.DONE if seen.complete else ExitCode.TRY_AGAIN


def _settings(path: Path | None) -> ControllerSettings | None:
    """Settings in a file; None: there is none."""
    if path is None:
        return None
    from planner.control.running.configuring import configured
    from planner.control.running.layering import file_layer
    from planner.scenario.tree import Complaints

    complaints = Complaints()
    layer = file_layer(path, complaints)
    return configured([] if layer is None else [layer], complaints).settings


def _policies(options: AnalyzeOptions, settings: ControllerSettings | None) -> Sequence[str]:
    """Names of policies; empty: each service has the one that the settings give it."""
    from planner.control.deciding import POLICIES

    known = POLICIES.names()
    wrong = [name for name in options.policy or () if name not in known]
    if wrong:
        raise ConfigurationError.from_findings(
            Finding("", None, "--policy", repr(name), ", ".join(known), nearest(name, known))
            for name in wrong
        )
    return options.policy or (() if settings is not None else _PUBLISHED)


def saturation_of(seen: Observation, settings: ControllerSettings | None) -> Sequence[RoleSaturation]:
    """How full replicas are by τ and γ, by service and role; services without a replica that tells are left out."""
    from models.controller import ControllerSettings
    from planner.control.analysis import AnalysisMemory, analyze

    judged, _ = analyze(seen, settings or ControllerSettings(), memory=AnalysisMemory(), now_s=seen.at_s)
    return tuple(
        RoleSaturation(service.seen.namespace, service.seen.model, str(role), signal)
        for service in judged.services
        for role, signal in service.signals.items()
        if signal is not None
    )


def decide_by(
    seen: Observation, settings: ControllerSettings | None, names: Sequence[str]
) -> Mapping[str, Decided]:
    """What each policy would decide, by name; ``settings`` where each service has its own."""
    from models.controller import ControllerSettings
    from planner.control.deciding import Decider, DecidingState

    base = settings or ControllerSettings()
    chosen: dict[str, ControllerSettings] = {
        name: base.but(
            rules=base.rules.but(policy=name),
            overrides=tuple(each.but(policy=None) for each in base.overrides),
        )
        for name in names
    } or {"settings": base}
    return {
        name: Decider().decide(seen, state=DecidingState(), settings=each, now_s=seen.at_s)[0]
        for name, each in chosen.items()
    }


def analysis_object(
    seen: Observation, saturation: Sequence[RoleSaturation], decided: Mapping[str, Decided]
) -> dict[str, Any]:
    """All of it as JSON has it; see docs/json.md."""
    return {
        "at_s": seen.at_s,
        "observation": seen.fingerprint,
        "complete": seen.complete,
        "findings": [each.model_dump(mode="json") for each in seen.findings],
        "saturation": [_saturation_object(each) for each in saturation],
        "policies": {name: _decided_object(each) for name, each in decided.items()},
    }


def _saturation_object(row: RoleSaturation) -> dict[str, Any]:
    signal = row.signal
    return {
        "namespace": row.namespace, "model": row.model, "role": row.role, "saturated": len(signal.saturated),
        "non_saturated": signal.non_saturated, "missing": signal.missing, "usage_kv": signal.usage_kv,
        "usage_queue": signal.usage_queue, "spare_kv": signal.spare_kv, "spare_queue": signal.spare_queue,
        "scale_up": signal.scale_up, "scale_in_safe": signal.scale_in_safe,
    }  # fmt: skip


def _decided_object(decided: Decided) -> dict[str, Any]:
    return {
        "verdicts": [
            {
                "namespace": each.namespace, "model": each.model, "role": each.role, "policy": each.policy,
                "analyzer": each.analyzer, "unit": each.unit, "demand": each.demand, "capacity": each.capacity,
                "anticipated": each.anticipated, "required": each.required, "spare": each.spare,
                "utilization": each.utilization, "may": each.may,
            }
            for each in decided.verdicts
        ],
        "decisions": [
            {
                "variant": each.variant.name, "namespace": each.variant.namespace, "cluster": each.variant.cluster,
                "model": each.variant.model, "accelerator": each.variant.accelerator, "ready": each.variant.ready,
                "pending": each.variant.pending, "wanted": each.variant.wanted, "desired": each.desired,
                "reason": each.reason, "message": each.message, "victims": list(each.victims), "facts": dict(each.facts),
            }
            for each in decided.decisions
        ],
        "conditions": [
            {"namespace": ref.namespace, "variant": ref.name, "cluster": ref.cluster or None}
            | condition.model_dump(mode="json")
            for ref, conditions in decided.conditions.items()
            for condition in conditions
        ],
        "findings": [each.model_dump(mode="json") for each in decided.findings],
        "constrained": decided.constrained,
    }  # fmt: skip
