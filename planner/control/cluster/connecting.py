"""Which clusters there are: contexts of kubeconfigs, or the cluster that we run in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import Field

from models.ids import Name
from models.units import PositiveSeconds
from models.value import Value
from planner.clock import Clock
from planner.control.cluster.api import Api, Limits
from planner.control.cluster.faults import ClusterFault
from planner.control.cluster.reading import as_name
from planner.control.cluster.transport import KubernetesTransport
from planner.errors import ConfigurationError, Finding

__all__ = ["ClusterOptions", "connect", "connect_all", "of_each"]

_Result = TypeVar("_Result")
_AT_ONCE: Final = 16


class ClusterOptions(Value):
    """Where a cluster is."""

    name: Name | None = Field(
        None, description="as pools and observations name it; None: the only one, or the context's name"
    )
    kubeconfig: Path | None = Field(
        None, description="None: KUBECONFIG, else ~/.kube/config; without one: the cluster that we run in"
    )
    context: str | None = Field(None, max_length=253, description="None: the current one of the kubeconfig")
    in_cluster: bool = Field(False, description="use the service account of the pod that we run in")
    timeout_s: PositiveSeconds = Field(10.0, le=600, description="longest time of one call, s")
    within_s: PositiveSeconds = Field(
        30.0, le=3600, description="longest time of a call with its repetitions, s"
    )


def connect(options: ClusterOptions, clock: Clock) -> Api:
    """The API of a cluster. Nothing is asked of it yet, so one that is out of reach is found out later.

    Raises:
        ConfigurationError: ``kubernetes`` is not installed, or there is no such kubeconfig or context.
    """
    try:
        from kubernetes.client import Configuration
    except ModuleNotFoundError:
        raise ConfigurationError(
            "clusters need the Python package 'kubernetes': pip install 'fleetplan[kubernetes]'"
        ) from None
    configuration = Configuration()
    # Retries are ours: those of the client would multiply them, and repeat what must not be repeated.
    configuration.retries = False
    configuration.connection_pool_maxsize = _AT_ONCE
    _load(options, configuration)
    limits = Limits(timeout_s=options.timeout_s, within_s=max(options.within_s, options.timeout_s))
    return Api(KubernetesTransport(configuration, clock), clock, options.name, limits)


def _load(options: ClusterOptions, configuration: Any) -> None:  # noqa: ANN401 - the client is untyped
    from kubernetes import config

    loaders: Any = config

    named = options.kubeconfig is not None or options.context is not None
    inside = options.in_cluster or (
        not named and not _has_kubeconfig() and "KUBERNETES_SERVICE_HOST" in os.environ
    )
    what = (
        "in_cluster"
        if inside
        else f"context {options.context!r}"
        if options.context
        else "the current context"
    )
    try:
        if inside:
            loaders.load_incluster_config(client_configuration=configuration)
        else:
            loaders.load_kube_config(
                # The client reads the variable once, when it is imported.
                config_file=str(options.kubeconfig or os.environ.get("KUBECONFIG") or "") or None,
                context=options.context,
                client_configuration=configuration,
                persist_config=False,
            )
    except config.ConfigException as cause:
        found = str(cause)[:300]
    except Exception as cause:
        # Whatever a YAML file can make of the client; its words may hold what the file holds.
        found = f"a file that cannot be read ({type(cause).__name__})"
    else:
        return
    where = "" if inside else str(options.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    finding = Finding(where, None, what, found, "a kubeconfig with that context, or a service account")
    raise ConfigurationError.from_findings([finding])


def _has_kubeconfig() -> bool:
    return bool(os.environ.get("KUBECONFIG")) or (Path.home() / ".kube" / "config").exists()


def connect_all(options: Iterable[ClusterOptions], clock: Clock) -> tuple[Api, ...]:
    """The APIs of several clusters; where there is more than one, each has a name: its own, or its context's.

    Raises:
        ConfigurationError: says everything that is wrong with any of them, also two of one name.
    """
    given = list(options)
    findings: list[Finding] = []
    apis: list[Api] = []
    for each in given:
        alone = len(given) == 1
        named = (
            each
            if each.name is not None or alone or each.context is None
            else each.but(name=as_name(each.context, "cluster"))
        )
        if not alone and named.name is None:
            findings.append(
                Finding("", None, "clusters", "a cluster without name and context", "a name for each")
            )
        try:
            apis.append(connect(named, clock))
        except ConfigurationError as error:
            findings += error.findings or [Finding("", None, "clusters", str(error), "")]
    names = [api.name for api in apis if api.name is not None]
    for name in sorted({name for name in names if names.count(name) > 1}):
        findings.append(
            Finding("", None, "clusters", f"the name {name!r} more than once", "a name of its own for each")
        )
    if findings:
        raise ConfigurationError.from_findings(dict.fromkeys(findings))
    return tuple(apis)


@dataclass(frozen=True, slots=True)
class _Failed:
    fault: ClusterFault


def of_each(
    apis: Iterable[Api], ask: Callable[[Api], _Result]
) -> tuple[Mapping[str | None, _Result], Mapping[str | None, ClusterFault]]:
    """Ask every cluster at once: answers by cluster, and faults of those that gave none.

    One that is out of reach takes its own time limit, and stops none of the others.
    """

    def attempt(api: Api) -> _Result | _Failed:
        try:
            return ask(api)
        except ClusterFault as fault:
            return _Failed(fault)

    given = list(apis)
    if len(given) == 1:
        results = [attempt(given[0])]
    else:
        with ThreadPoolExecutor(max_workers=max(1, min(len(given), _AT_ONCE))) as pool:
            results = list(pool.map(attempt, given))
    answers: dict[str | None, _Result] = {}
    faults: dict[str | None, ClusterFault] = {}
    for api, result in zip(given, results, strict=True):
        if isinstance(result, _Failed):
            faults[api.name] = result.fault
        else:
            answers[api.name] = result
    return answers, faults
