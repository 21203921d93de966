"""``calibrate``: from load tests to parameters of the queueing model, measured rows, or thresholds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from models.llm import Precision
from models.queueing import QueueingForm
from planner.cli.asking import SLO_HELP, parse_slo
from planner.cli.edge import Common, ExitCode
from planner.cli.gathering import Gathering, made
from planner.cli.outputs import FORCE_HELP, Output, begins_with
from planner.cli.terminal import note, out_console
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.calibration import Calibration, ThresholdProposal
    from models.load import LoadReport
    from models.queueing_profile import QueueingProfile
    from planner.calibration import SweepOptions
    from planner.calibration.grouping import Group

__all__ = ["CalibrateOptions", "calibrate"]

_SUFFIXES: Final = (".yaml", ".yml", ".csv")
_STARTUP_S: Final = 120.0
_NAME_OF_ROWS: Final = "calibration"


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(Common):
    """Options of ``calibrate``."""

    reports: Annotated[
        list[Path],
        typer.Argument(
            metavar="REPORT...",
            help="Reports of load tests, or folders of them: guidellm, inference-perf, vllm bench serve, aiperf, "
            "llm-d-benchmark, /metrics pages over time, recorded requests, profile tables.",
            show_default=False,
        ),
    ]
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PROFILE", show_default=False,
            help="Profile to write: parameters (.yaml) or measured rows (.csv); with --thresholds a file to include (.yaml).",
        ),
    ] = None  # fmt: skip
    llm: Annotated[str | None, typer.Option("--llm", metavar="NAME", show_default=False, help="LLM that was served; default: as the reports say.")] = None  # fmt: skip
    accelerator: Annotated[str | None, typer.Option("--accelerator", metavar="NAME", show_default=False, help="Accelerator type; default: as the reports say.")] = None  # fmt: skip
    engine: Annotated[str | None, typer.Option("--engine", metavar="NAME", show_default=False, help="Engine, e.g. vllm; default: as the reports say.")] = None  # fmt: skip
    precision: Annotated[Precision | None, typer.Option("--precision", show_default=False, help="Precision of the weights; default: as the LLM is published, else bf16.")] = None  # fmt: skip
    tp: Annotated[int | None, typer.Option("--tp", min=1, max=4096, show_default=False, help="Tensor parallel; default: as the reports say, else 1.")] = None  # fmt: skip
    pp: Annotated[int | None, typer.Option("--pp", min=1, max=4096, show_default=False, help="Pipeline parallel; default: as the reports say, else 1.")] = None  # fmt: skip
    dp: Annotated[int | None, typer.Option("--dp", min=1, max=4096, show_default=False, help="Data parallel ranks inside a replica; default: as the reports say, else 1.")] = None  # fmt: skip
    ep: Annotated[int | None, typer.Option("--ep", min=1, max=4096, show_default=False, help="Expert parallel; default: as the reports say, else 1.")] = None  # fmt: skip
    max_batch: Annotated[int | None, typer.Option("--max-batch", min=1, max=10**5, show_default=False, help="Requests served at once (max_num_seqs of vLLM); default 256.")] = None  # fmt: skip
    chunk_tokens: Annotated[int, typer.Option("--chunk-tokens", min=1, max=10**7, help="Tokens of an iteration (max_num_batched_tokens of vLLM).")] = 8192  # fmt: skip
    form: Annotated[QueueingForm, typer.Option("--form", help="Published form of the model.")] = (
        QueueingForm.ITERATIONS
    )
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the resampling behind the intervals.")] = 0
    plots: Annotated[Path | None, typer.Option("--plots", metavar="FOLDER", show_default=False, help="Draw fits and residuals there, a PNG each.")] = None  # fmt: skip
    thresholds: Annotated[bool, typer.Option("--thresholds", help="Find tau and gamma from a load sweep, and propose headroom.")] = False  # fmt: skip
    slo: Annotated[str | None, typer.Option("--slo", metavar="PROMISES", show_default=False, help=f"With --thresholds. {SLO_HELP}")] = None  # fmt: skip
    startup_s: Annotated[float | None, typer.Option("--startup", min=0, max=1e6, metavar="S", show_default=False, help="Time from request to ready, s; default: as the reports say, else 120.")] = None  # fmt: skip
    cv: Annotated[float | None, typer.Option("--cv", min=0, max=100, metavar="CV", show_default=False, help="Burstiness: standard deviation over mean of gaps between arrivals; default: as recorded, else 1 (Poisson).")] = None  # fmt: skip
    growth: Annotated[float, typer.Option("--growth", min=0, max=10, metavar="SHARE", help="Share by which load may grow per minute beside chance.")] = 0.0  # fmt: skip
    replicas: Annotated[int, typer.Option("--replicas", min=1, max=10**6, metavar="N", help="Replicas that will share the load: more fluctuate less.")] = 1  # fmt: skip
    kv_tokens: Annotated[float | None, typer.Option("--kv-tokens", min=1, max=1e15, metavar="N", show_default=False, help="KV capacity of a replica, tokens, where reports state no usage.")] = None  # fmt: skip
    service: Annotated[str | None, typer.Option("--service", metavar="NAME", show_default=False, help="Service that thresholds are for; default: every service.")] = None  # fmt: skip
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
    force: Annotated[bool, typer.Option("--force", help=FORCE_HELP)] = False


_OF_FIT: Final = ("max_batch", "chunk_tokens", "form", "seed", "plots")
_OF_THRESHOLDS: Final = ("slo", "startup_s", "cv", "growth", "replicas", "kv_tokens", "service")
"""Options that only one of the two things knows that this command does."""

_NAMES: Final = {"startup_s": "startup"}
_DEFAULTS: Final = {each.name: each.default for each in fields(CalibrateOptions)}


def calibrate(options: CalibrateOptions) -> ExitCode:
    """Fit what a replica can do to reports of load tests, or find the thresholds at which it is full.

    Example: fleetplan calibrate run-*.json --accelerator H100 --max-batch 128 -o llama-h100.yaml --plots plots
    """
    from planner.importers.reports import read_reports

    asked = Gathering()
    output = asked.attempt(lambda: _output(options))
    if output is not None:
        asked.attempt(output.check)
    _refuse_idle(options, asked)
    plots, promises = options.plots, options.slo
    if plots is not None:
        asked.attempt(lambda: _check_plots(plots))
    if promises is not None:
        asked.attempt(lambda: parse_slo(promises))
    found = asked.attempt(lambda: read_reports(options.reports))
    asked.check()
    report = made(found)
    for each in report.notes:
        note(each)
    groups = _groups(options, report)
    if options.thresholds:
        _thresholds(options, report, groups, output)
    else:
        _fit(options, groups, output)
    return ExitCode.DONE


def _refuse_idle(options: CalibrateOptions, asked: Gathering) -> None:
    """What was given and would change nothing: options of the other thing that this command does."""
    rows = not options.thresholds and options.output is not None and options.output.suffix == ".csv"
    idle = _OF_FIT if options.thresholds or rows else ()
    for name in (*idle, *(() if options.thresholds else _OF_THRESHOLDS)):
        value = getattr(options, name)
        if value != _DEFAULTS[name]:
            option = f"--{_NAMES.get(name, name).replace('_', '-')}"
            if name in _OF_THRESHOLDS:
                asked.wrong(option, f"{str(value)!r} without --thresholds", "it with --thresholds alone")
            elif rows:
                asked.wrong(
                    option, f"{str(value)!r} for a file of measured rows", "it where parameters are fitted"
                )
            else:
                asked.wrong(option, f"{str(value)!r} with --thresholds", "it without --thresholds alone")


def _output(options: CalibrateOptions) -> Output | None:
    from planner.cli.calibration_files import PROFILE_HEAD, THRESHOLDS_HEAD
    from planner.performance.profile import COLUMNS

    if options.output is None:
        return None
    suffixes = _SUFFIXES[:2] if options.thresholds else _SUFFIXES
    made = Output(
        path=options.output,
        ours=begins_with(PROFILE_HEAD, THRESHOLDS_HEAD, ",".join(COLUMNS)),
        inputs=tuple(path for path in options.reports if path.is_file()),
        force=options.force,
    )
    if not made.on_stdout and options.output.suffix not in suffixes:
        found = f"the name {options.output.name!r}"
        raise ConfigurationError.from_findings(
            [Finding("", None, "--output", found, f"a name that ends in {', '.join(suffixes)}")]
        )
    if made.on_stdout and options.as_json:
        raise ConfigurationError("give --json or -o to standard output, not both")
    return made


def _check_plots(folder: Path) -> None:
    """Refuse what could not be drawn, before anything is computed."""
    from planner.cli.pictures import INSTALL, lacking

    missing = lacking()
    if missing:
        raise ConfigurationError(f"--plots needs {' and '.join(missing)}: {INSTALL}")
    if not folder.is_dir():
        raise ConfigurationError.from_findings(
            [Finding("", None, "--plots", f"no folder {str(folder)!r}", "a folder that exists")]
        )


def _groups(options: CalibrateOptions, report: LoadReport) -> tuple[Group, ...]:
    from models.variant import Parallelism
    from planner.calibration.grouping import Named, grouped

    stated = {"tp": options.tp, "pp": options.pp, "dp": options.dp, "ep": options.ep}
    degrees = {name: degree for name, degree in stated.items() if degree is not None}
    named = Named(
        llm=options.llm,
        accelerator=options.accelerator,
        engine=options.engine,
        parallelism=Parallelism(**degrees) if degrees else None,
    )
    return grouped(
        report.points, named, template=lambda llm, accelerator: _template(llm, accelerator, options.precision)
    )


def _template(llm: str, accelerator: str, precision: Precision | None) -> QueueingProfile:
    """The profile of names as the catalog has them; a name that it does not know stands as it is."""
    from pydantic import ValidationError

    from models.queueing import QueueingParameters
    from models.queueing_profile import QueueingProfile
    from planner.catalog.catalog import names_of
    from planner.planning import known_catalog

    catalog = known_catalog()
    llm_id = names_of(catalog.llms).get(llm.casefold(), llm)
    published = catalog.llms[llm_id].precision if llm_id in catalog.llms else Precision.BF16
    try:
        return QueueingProfile.model_validate(
            {
                "llm": llm_id,
                "accelerator": names_of(catalog.accelerators).get(accelerator.casefold(), accelerator),
                "precision": precision or published,
                "parameters": QueueingParameters(alpha_ms=1, beta_ms_per_token=0, gamma_ms_per_token=0),
            }
        )
    except ValidationError as cause:
        findings = [
            Finding(
                "",
                None,
                f"--{e['loc'][0]}",
                repr(e["input"]),
                "a name of letters, digits and . _ : / @ # + -",
            )
            for e in cause.errors(include_url=False)
        ]
        raise ConfigurationError.from_findings(findings) from cause


def _fit(options: CalibrateOptions, groups: Sequence[Group], output: Output | None) -> None:
    from planner.calibration import FitOptions
    from planner.calibration import calibrate as fit

    if output is not None and output.path.suffix == ".csv":
        _write_rows(groups, output)
        return
    how = FitOptions(
        form=options.form, max_batch=options.max_batch, chunk_tokens=options.chunk_tokens, seed=options.seed
    )
    found: list[Calibration] = []
    findings: list[Finding] = []
    for group in groups:
        try:
            found.append(fit(group.points, group.known, options=how))
        except ConfigurationError as cause:
            findings += cause.findings
    if findings:
        raise ConfigurationError("the data cannot identify every parameter", findings=findings)
    if output is not None:
        from planner.cli.calibration_files import profile_text

        output.write(profile_text(found))
    _draw(options.plots, found)
    _show_fits(options, found, output)


def _show_fits(options: CalibrateOptions, found: Sequence[Calibration], output: Output | None) -> None:
    from planner.cli.json_output import as_json

    if options.as_json:
        sys.stdout.write(as_json({"calibrations": [each.model_dump(mode="json") for each in found]}))
    elif output is None or not output.on_stdout:
        from planner.cli.screen.calibration import show_calibration

        for each in found:
            show_calibration(out_console(), each)
    if output is not None and not output.on_stdout:
        note(f"parameters written to {output.path}")


def _write_rows(groups: Sequence[Group], output: Output) -> None:
    from planner.calibration.usable import reasons_against
    from planner.cli.calibration_files import measured_rows
    from planner.performance.profile import write_profile

    rows = []
    for group in groups:
        against = reasons_against(group.points)
        kept = [point for point, reason in zip(group.points, against, strict=True) if reason is None]
        rows += measured_rows(kept, group.known, source=_NAME_OF_ROWS)
    if not rows:
        raise ConfigurationError("no load level states both latencies of a replica that keeps up")
    with output.at_once() as temporary:
        write_profile(rows, temporary)
    if not output.on_stdout:
        note(f"{len(rows)} rows written to {output.path}; saturated load levels are left out")


def _draw(folder: Path | None, found: Sequence[Calibration]) -> None:
    if folder is None:
        return
    from planner.charts import save_chart
    from planner.charts.calibration import calibration_chart

    for each in found:
        known = each.profile
        name = (
            "-".join((known.llm, known.accelerator, known.parallelism.label))
            .replace("/", "-")
            .replace("·", "-")
        )
        path = folder / f"{name}.png"
        save_chart(calibration_chart(each), path)
        note(f"drawn to {path}")


def _thresholds(
    options: CalibrateOptions, report: LoadReport, groups: Sequence[Group], output: Output | None
) -> None:
    from planner.calibration import SweepOptions

    starts = report.startups_s
    seen_start = max(starts) if starts else _STARTUP_S
    cv = options.cv if options.cv is not None else report.arrival_cv
    how = SweepOptions(
        slo=parse_slo(options.slo or ""),
        startup_s=seen_start if options.startup_s is None else options.startup_s,
        arrival_cv=1.0 if cv is None else cv,
        growth_per_s=options.growth / 60,
        replicas=options.replicas,
        kv_tokens=options.kv_tokens,
    )
    found = _proposals(groups, how)
    if output is not None:
        from planner.cli.calibration_files import thresholds_text

        output.write(thresholds_text(found, service=options.service))
    if options.as_json:
        from planner.cli.json_output import as_json

        sys.stdout.write(as_json({"proposals": [each.model_dump(mode="json") for each in found]}))
    elif output is None or not output.on_stdout:
        from planner.cli.screen.calibration import show_proposals

        show_proposals(out_console(), found)
    if output is not None and not output.on_stdout:
        note(f"thresholds written to {output.path}")


def _proposals(groups: Sequence[Group], how: SweepOptions) -> list[ThresholdProposal]:
    from planner.calibration import propose_thresholds
    from planner.calibration.thresholds import sweeps_of

    found: list[ThresholdProposal] = []
    findings: list[Finding] = []
    for group in groups:
        known = group.known
        name = f"{known.llm}@{known.accelerator}"
        for sweep in sweeps_of(group.points):
            try:
                proposal = propose_thresholds(sweep, name, options=how)
            except ConfigurationError as cause:
                findings += cause.findings
            else:
                found.append(proposal.but(accelerator=known.accelerator))
    if findings:
        raise ConfigurationError.from_findings(findings)
    return found
