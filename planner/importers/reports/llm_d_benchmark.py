"""Benchmark reports of llm-d-benchmark, schema 0.1, 0.2 and 0.2.1: one point per report; each figure names its unit."""

from __future__ import annotations

from typing import Any, Final

from models.load import Arrivals, LatencySpread, LoadOrigin, LoadPoint, LoadReport
from models.variant import Parallelism
from planner.importers.reports.document import Report, ReportText, per_token, refuse, spread

__all__ = ["is_llm_d_benchmark", "read_llm_d_benchmark"]

FORMAT: Final = "llm-d-benchmark"
_VERSIONS: Final = ("0.1", "0.2", "0.2.1")
_TO_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "seconds": 1.0, "milliseconds": 1e-3}
_PERCENT: Final = 100.0


def is_llm_d_benchmark(data: Any) -> bool:  # noqa: ANN401 - what a foreign file holds
    """Whether a document is a benchmark report, of any version."""
    return (
        isinstance(data, dict)
        and "version" in data
        and "scenario" in data
        and ("metrics" in data or "results" in data)
    )


def read_llm_d_benchmark(text: ReportText) -> LoadReport:
    """The point of a report, with the start-up times that newer ones carry.

    Raises:
        CatalogError: another schema, no request succeeded, unknown units, or figures are missing.
    """
    report = Report(text.file, text.data)
    version = str(report.get("version"))
    if version not in _VERSIONS:
        raise refuse(text.file, "version", repr(version), ", ".join(_VERSIONS))
    first = version == _VERSIONS[0]
    place = "metrics" if first else "results.request_performance.aggregate"
    figures = report.child(place)
    if figures is None:
        raise refuse(text.file, place, "nothing", "aggregate figures of the requests")
    origin = (_origin_of_first if first else _origin)(report, version)
    load = Report(text.file, report.get("scenario.load.standardized") or {}, "scenario.load", report.findings)
    starts = report.children("results.observability.pod_startup_times.pods")
    seconds = [each.number("startup_seconds") for each in starts]
    point = _point(figures, load, origin, None if first else _engine(report))
    return report.report([point], startups_s=tuple(each for each in seconds if each is not None))


def _point(figures: Report, load: Report, origin: LoadOrigin, engine: Report | None) -> LoadPoint | None:
    total = figures.needed("requests.total")
    failed = (figures.number("requests.failures") or 0) + (figures.number("requests.incomplete") or 0)
    if total <= failed:
        found = f"{failed:g} failures among {total:g} requests"
        figures.complain("requests.failures", found, "a run whose requests succeed")
        return None
    rate = load.number("rate_qps")
    limit = load.number("concurrency")
    kv = engine.number("kv_cache_usage.mean") if engine else None
    output = figures.needed("requests.output_length.mean")
    ttft, e2e = _latency(figures, "time_to_first_token"), _latency(figures, "request_latency")
    steps = (_latency(figures, "inter_token_latency"), _latency(figures, "time_per_output_token"))
    return figures.point(
        arrivals=Arrivals.CLOSED if rate is None and limit is not None else Arrivals.OPEN,
        concurrency=limit if rate is None else None,
        running=(engine.number("running_requests.mean") or None) if engine else None,
        waiting=engine.number("waiting_requests.mean") if engine else None,
        kv_usage=None if kv is None else kv / _PERCENT,
        offered_rps=rate,
        achieved_rps=figures.needed("throughput.request_rate.mean", "throughput.requests_per_sec"),
        input_tokens=figures.needed("requests.input_length.mean"),
        output_tokens=output,
        ttft=ttft,
        itl=per_token(*steps, ttft=ttft, e2e=e2e, output_tokens=output),
        e2e=e2e,
        requests=int(total - failed),
        errors=int(failed),
        duration_s=figures.number("time.duration"),
        origin=origin,
    )


def _latency(figures: Report, name: str) -> LatencySpread | None:
    found = figures.child(f"latency.{name}")
    if found is None:
        return None
    unit = (found.text("units") or "").partition("/")[0]
    if unit not in _TO_SECONDS:
        found.complain("units", repr(found.get("units")), ", ".join(_TO_SECONDS))
        return None
    return spread(found, scale=_TO_SECONDS[unit])


def _engine(report: Report) -> Report | None:
    """What the engine said of itself, where one component did; several are not added up."""
    said = [
        each
        for each in report.children("results.observability.components")
        if each.child("aggregate.kv_cache_usage")
    ]
    return said[0].child("aggregate") if len(said) == 1 else None


def _origin_of_first(report: Report, version: str) -> LoadOrigin:
    hosts = report.children("scenario.host.accelerator")
    engines = report.children("scenario.platform.engine")
    one = hosts[0] if len(hosts) == 1 else None
    names = {each.text("model") for each in hosts}
    return LoadOrigin(
        format=FORMAT,
        file=report.file,
        tool_version=version,
        llm=report.text("scenario.model.name"),
        accelerator=names.pop() if len(names) == 1 else None,
        engine=engines[0].text("name") if engines else None,
        engine_version=engines[0].text("version") if engines else None,
        parallelism=_parallelism(one.child("parallelism")) if one else None,
    )


def _origin(report: Report, version: str) -> LoadOrigin:
    parts = report.children("scenario.stack")
    engines = [each for each in parts if each.get("standardized.kind") == "inference_engine"]
    one = engines[0] if len(engines) == 1 else None
    replicas = one.number("standardized.replicas") if one else None
    return LoadOrigin(
        format=FORMAT,
        file=report.file,
        tool_version=version,
        llm=one.text("standardized.model.name") if one else None,
        accelerator=one.text("standardized.accelerator.model") if one else None,
        engine_version=one.text("standardized.tool_version") if one else None,
        parallelism=_parallelism(one.child("standardized.accelerator.parallelism")) if one else None,
        replicas=int(replicas) if replicas else None,
    )


def _parallelism(stated: Report | None) -> Parallelism | None:
    if stated is None:
        return None
    degrees = {name: int(stated.number(name) or 1) for name in ("tp", "pp", "dp", "ep")}
    return Parallelism(**degrees)
