"""The self-check of what a Prometheus has: which expected series are absent, and why that is most likely so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from models.observation import Finding
from planner.control.collectors.access import Fault
from planner.control.collectors.diagnosing import about_names, absent_series, kinds_of
from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.names import ENGINE_PREFIXES, engine_of
from planner.control.collectors.prometheus_api import PrometheusApi
from planner.control.collectors.queries import Questions
from planner.errors import nearest

__all__ = ["check"]

_SHOWN: Final = 5
_ALIASES: Final = {
    "namespace": ("exported_namespace", "kubernetes_namespace", "k8s_namespace_name", "pod_namespace", "ns"),
    "pod": ("exported_pod", "kubernetes_pod_name", "pod_name", "k8s_pod_name"),
}
"""Labels that scrapes use in place of the usual ones."""


def check(api: PrometheusApi, questions: Questions) -> tuple[Finding, ...]:
    """Look for every series that decisions rest on.

    Args:
        api: of the Prometheus.
        questions: for the namespaces that are to be looked at.
    """
    try:
        names = api.names(questions.names())
        found = [
            *_about_engines(api, questions, names),
            *_about_routers(names),
            *_about_targets(api, questions),
        ]
    except Fault as fault:
        return (Finding(subject="Prometheus", problem=str(fault), remedy="nothing could be checked"),)
    where = _where(questions.namespaces)
    for kind in sorted(kinds_of(names) & {*ENGINE_PREFIXES, "router"}):
        found += absent_series(kind, names, where=where)
    return (*found, *about_names(names, where=where))


def _where(namespaces: Sequence[str]) -> str:
    return f"in {_some(namespaces)}" if namespaces else "in this Prometheus"


def _about_engines(api: PrometheusApi, questions: Questions, names: Iterable[str]) -> list[Finding]:
    if not any(engine_of(name) for name in names):
        return [_why_none(api, questions)]
    told = []
    for label, meaning in ((questions.labels.namespace, "namespace"), (questions.labels.pod, "pod")):
        missing = api.query(questions.engines_without(label)).result
        if missing:
            told.append(_unlabelled(api, questions, label, meaning, int(missing[0][2])))
    if not api.query(questions.targets_known()).result:
        told.append(
            Finding(
                subject="up",
                problem=f"no series up {_where(questions.namespaces)} though engines are there",
                remedy="they are written by an agent or a relabelling rule drops up; an engine that was removed is noticed "
                "only when its last sample is five minutes old",
            )
        )
    return told


def _unlabelled(api: PrometheusApi, questions: Questions, label: str, meaning: str, count: int) -> Finding:
    samples = api.query(questions.one_engine()).result
    labels = sorted(samples[0][0]) if samples else []
    return Finding(
        subject=f"label {label}",
        problem=f"{count} series of engines do not have it, so they cannot be attributed by it",
        remedy=_alias(meaning, labels),
    )


def _alias(meaning: str, labels: Sequence[str]) -> str:
    known = [name for name in _ALIASES[meaning] if name in labels]
    close = known[0] if known else nearest(meaning, [name for name in labels if name != "__name__"])
    if close is not None:
        return f"relabelled: there is {close!r}; set labels.{meaning}: {close}, or relabel the scrape"
    return f"scraped without it (labels: {_some(labels)}); use a PodMonitor or ServiceMonitor, or add it by relabelling"


def _why_none(api: PrometheusApi, questions: Questions) -> Finding:
    """Why there is no series of any engine: elsewhere, not scraped, or scraped at a wrong port."""
    where = _where(questions.namespaces)
    problem = f"no series of {' or '.join(ENGINE_PREFIXES)} {where}"
    elsewhere = api.query(questions.engines_by(questions.labels.namespace)).result
    if elsewhere:
        spaces = sorted(labels.get(questions.labels.namespace, "") for labels, _, _ in elsewhere)
        if any(spaces):
            remedy = f"there are some in {_some([space for space in spaces if space])}: another namespace, or relabelled"
        else:
            samples = api.query(questions.one_engine()).result
            remedy = _alias("namespace", sorted(samples[0][0]) if samples else [])
        return Finding(subject="engines", problem=problem, remedy=remedy)
    known = api.query(questions.targets_known()).result
    if known:
        count = int(sum(value for _, _, value in known))
        remedy = (
            f"{count} targets are scraped there and none of them is an engine: wrong port or path, or metrics are off "
            "(vLLM: --disable-log-stats; SGLang: without --enable-metrics)"
        )
    else:
        remedy = (
            "nothing is scraped there: no PodMonitor or ServiceMonitor selects the pods, or this Prometheus does not "
            "look at the namespace"
        )
    return Finding(subject="engines", problem=problem, remedy=remedy)


def _about_routers(names: Iterable[str]) -> list[Finding]:
    if "router" in kinds_of(names):
        return []
    return [
        Finding(
            subject="endpoint picker",
            problem="no series of it, so arrivals and the queue of flow control are unknown",
            remedy="not scraped, or refused: its metrics ask for a token (a ServiceMonitor with authorization, and a role "
            "that may get the path /metrics)",
        )
    ]


def _about_targets(api: PrometheusApi, questions: Questions) -> list[Finding]:
    """Targets that cannot be scraped, with the error that Prometheus met where it says so."""
    down = api.query(questions.targets_down()).result
    if not down:
        return []
    instances = {labels.get(questions.labels.instance, "") for labels, _, _ in down}
    return [
        Finding(
            subject=f"target {instance}",
            problem=f"cannot be scraped: {error}" if error else "cannot be scraped",
            remedy=_why_down(error),
        )
        for instance, error in sorted(_errors(api, instances, questions.labels).items())[:_SHOWN]
    ]


def _errors(api: PrometheusApi, instances: Iterable[str], labels: LabelNames) -> dict[str, str]:
    errors = dict.fromkeys(instances, "")
    try:
        targets = api.targets()
    except Fault:
        return errors
    for target in targets:
        own, error = target.get("labels"), target.get("lastError")
        instance = own.get(labels.instance) if isinstance(own, dict) else None
        if isinstance(instance, str) and instance in errors and isinstance(error, str):
            errors[instance] = " ".join(error.split())[:200]
    return errors


def _why_down(error: str) -> str:
    for sign, why in (
        ("refused", "wrong port, or an engine that is starting or ending"),
        ("404", "wrong path: engines answer at /metrics"),
        ("401", "it asks for a token: authorization in the monitor"),
        ("403", "it asks for a token with more rights: authorization in the monitor"),
        ("deadline", "overloaded, or a network policy swallows the scrape"),
        ("timeout", "overloaded, or a network policy swallows the scrape"),
        ("x509", "its certificate is not trusted: tlsConfig in the monitor"),
        ("HTTP response to HTTPS", "scheme https in the monitor, and it speaks http"),
        ("no such host", "its name does not resolve any more"),
    ):
        if sign in error:
            return why
    return "wrong port, or a page that Prometheus does not understand"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(name[:100] for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
