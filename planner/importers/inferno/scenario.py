"""A system of Inferno -> a scenario.

What becomes what: a *server* is a service, a *model* an LLM of which only the name is known, an *accelerator* for that model
a variant of ``accCount`` × ``multiplicity`` units of its type, a *capacity* a pool whose units are alike (Inferno knows no
nodes, so every unit is a pod of its own), *perfParms* the parameters of the queueing model. Cents become dollars. Priorities
turn round: there 1 is the most important, here the largest. ``heterogeneous: false`` is one variant per service,
``unlimited: true`` the unconstrained mode, ``keepAccelerator`` leaves the variant that runs. ``slo-tps`` asks that a
server's replicas carry so many tokens per second: its demand is at least that over the output length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from models.scenario import Scenario
from planner.errors import ConfigurationError, Finding, nearest
from planner.importers.inferno.documents import Accelerator, Perf, Server, ServiceClass, Target
from planner.importers.inferno.reading import System, read_system

__all__ = ["import_inferno"]

_LEAST_IMPORTANT: Final = 101
_GB: Final = 10**9
_CENTS: Final = 100
_UNSTATED: Final = "unstated"


def import_inferno(paths: Sequence[Path], *, name: str = "inferno") -> Scenario:
    """The scenario that files of Inferno describe.

    Args:
        paths: the files; which is which is told by their keys. Answers (``allocations``) are passed over.
        name: of the scenario.

    Raises:
        ConfigurationError: a file is wrong, or names something that is in none; lists all of it.
    """
    system = read_system(paths)
    findings = [*_duplicates(system), *_dangling(system)]
    if findings:
        raise ConfigurationError.from_findings(findings)
    try:
        return Scenario.model_validate(_scenario(system, name))
    except ValidationError as cause:
        raise ConfigurationError.from_findings(
            Finding("", None, ".".join(map(str, error["loc"])), repr(error.get("input")), str(error["msg"]))
            for error in cause.errors(include_url=False)
        ) from cause


def _duplicates(system: System) -> Iterator[Finding]:
    named: Mapping[str, list[str]] = {
        "accelerators": [each.name for each in system.accelerators],
        "capacities": [each.type for each in system.capacities],
        "perfs": [f"{each.name} on {each.accelerator}" for each in system.perfs],
        "classes": [each.name for each in system.classes],
        "servers": [each.name for each in system.servers],
    }
    for where, names in named.items():
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Finding(system.origin[where], None, "", f"{name!r} more than once", "each once")


def _dangling(system: System) -> Iterator[Finding]:
    """Names that nothing has."""
    kinds = {each.name for each in system.accelerators}
    models = {each.name for each in system.perfs}
    classes = {each.name: each for each in system.classes}
    for i, perf in enumerate(system.perfs):
        if perf.accelerator not in kinds:
            yield _unknown(system.origin["perfs"], f"models[{i}].acc", perf.accelerator, kinds)
    for i, server in enumerate(system.servers):
        file, at = system.origin["servers"], f"servers[{i}]"
        if server.model not in models:
            yield _unknown(file, f"{at}.model", server.model, models)
        if server.service_class not in classes:
            yield _unknown(file, f"{at}.class", server.service_class, classes)
        elif _target(server, classes) is None:
            found = f"{server.model!r}, for which class {server.service_class!r} has no targets"
            having = [target.model for target in classes[server.service_class].targets]
            yield Finding(file, None, f"{at}.model", found, ", ".join(having) or "a class with targets")
        runs_on = server.current.accelerator
        if runs_on and server.current.replicas and server.model in models:
            on = {perf.accelerator for perf in system.perfs if perf.name == server.model}
            if runs_on not in on:
                yield _unknown(file, f"{at}.currentAlloc.accelerator", runs_on, on)


def _unknown(file: str, path: str, name: str, known: Mapping[str, object] | set[str]) -> Finding:
    return Finding(file, None, path, repr(name), ", ".join(sorted(known)), nearest(name, sorted(known)))


def _target(server: Server, classes: Mapping[str, ServiceClass]) -> Target | None:
    targets = classes[server.service_class].targets
    return next((target for target in targets if target.model == server.model), None)


def _scenario(system: System, name: str) -> dict[str, Any]:
    tuning = system.tuning
    unlimited = tuning is not None and tuning.unlimited
    classes = {each.name: each for each in system.classes}
    kinds = {each.name: each for each in system.accelerators}
    single = tuning is not None and not tuning.heterogeneous
    return {
        "name": name,
        "description": "Imported from a system description of Inferno.",
        "mode": "unconstrained" if unlimited else "constrained",
        "services": [_service(server, system, classes, kinds, single=single) for server in system.servers],
        "pools": list(_pools(system)),
        "fleet": {"running": list(_running(system, kinds))},
        "accelerators": list(_types(system)),
        "llms": [{"id": model, "opaque": True} for model in sorted({perf.name for perf in system.perfs})],
    }


def _service(
    server: Server,
    system: System,
    classes: Mapping[str, ServiceClass],
    kinds: Mapping[str, Accelerator],
    *,
    single: bool,
) -> dict[str, Any]:
    target, load = _target(server, classes), server.current.load
    promised = target or Target(model=server.model)
    output = max(1, round(load.output_tokens))
    perfs = [perf for perf in system.perfs if perf.name == server.model]
    if server.keep_accelerator and server.current.accelerator:
        perfs = [perf for perf in perfs if perf.accelerator == server.current.accelerator]
    slo = {"ttft_s": promised.ttft_ms / 1000 or None, "itl_s": promised.itl_ms / 1000 or None}
    return {
        "id": server.name,
        "llm": server.model,
        "priority": _LEAST_IMPORTANT - classes[server.service_class].priority,
        "buckets": [
            {
                "id": "all",
                "arrival_rps": max(load.requests_per_min / 60, promised.tokens_per_s / output),
                "input_tokens": max(1, round(load.input_tokens)),
                "output_tokens": output,
            }
        ],
        "slo": slo,
        "min_replicas": server.min_replicas,
        "max_variants": 1 if single else None,
        # Inferno bounds the queue of a replica by its size alone.
        "thresholds": {"tau_queue": float(max(5, server.max_queue)), "gamma_queue": 0.0},
        "variants": [_variant(perf, server, kinds[perf.accelerator]) for perf in perfs],
    }


def _variant(perf: Perf, server: Server, kind: Accelerator) -> dict[str, Any]:
    units = perf.count * kind.multiplicity
    return {
        "id": perf.accelerator,
        "accelerator": kind.type,
        "parallelism": {"tp": units},
        "pods_per_replica": units,
        "cost": {"usd_per_h": perf.count * kind.cents_per_h / _CENTS},
        "queueing": {
            "alpha_ms": perf.parameters.alpha,
            "beta_ms_per_token": perf.parameters.beta,
            "gamma_ms_per_token": perf.parameters.gamma,
            "max_batch": server.max_batch or perf.max_batch,
            "at_tokens": None if server.max_batch else perf.at_tokens or None,
            "max_queue": server.max_queue,
        },
    }


def _smallest(system: System) -> dict[str, Accelerator]:
    """The kind of each type with fewest units: it tells memory, power and price of one."""
    found: dict[str, Accelerator] = {}
    for kind in sorted(system.accelerators, key=lambda kind: (kind.multiplicity, kind.name)):
        found.setdefault(kind.type, kind)
    return found


def _types(system: System) -> Iterator[dict[str, Any]]:
    for name, kind in sorted(_smallest(system).items()):
        units = kind.multiplicity
        yield {
            "id": name,
            "vendor": _UNSTATED,
            "memory_bytes": round(kind.memory_gb * _GB / units),
            "memory_bandwidth": None if kind.bandwidth_gb_s is None else kind.bandwidth_gb_s * _GB / units,
            "tdp_w": None if kind.power.full is None else kind.power.full / units,
            "idle_w": None if kind.power.idle is None else kind.power.idle / units,
            "usd_per_h": kind.cents_per_h / _CENTS / units,
        }


def _pools(system: System) -> Iterator[dict[str, Any]]:
    """A pool per type; a type without capacity has none of its units (without limits: as many as it takes)."""
    counts = {each.type: each.count for each in system.capacities}
    for name in sorted({*_smallest(system), *(counts.keys() & {kind.type for kind in system.accelerators})}):
        nodes = [{"id": name, "gpus": counts[name]}] if counts.get(name) else []
        yield {"id": name, "accelerator": name, "nodes": nodes}


def _running(system: System, kinds: Mapping[str, Accelerator]) -> Iterator[dict[str, Any]]:
    for server in system.servers:
        if server.current.accelerator and server.current.replicas:
            yield {
                "service": server.name,
                "variant": server.current.accelerator,
                "pool": kinds[server.current.accelerator].type,
                "replicas": server.current.replicas,
            }
