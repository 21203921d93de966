"""AIBrix's GPU profiles (vllm-project/aibrix, gpu_optimizer/optimizer/profiling/gen_profile.py @0d0574b) -> a scenario.

One file for each Deployment: ``gpu``, ``cost``, ``tputs`` with a row for each output and a column for each input length of
``indexes``, and the promises ``slos`` at which the rates were taken. A rate of 0 means that no measured rate kept them.
Profiles hold no traffic, so it is given beside them. Their grids may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from models.scenario import Scenario
from models.shape_rate import ShapeRate
from models.workload import Slo
from planner.catalog import Catalog
from planner.errors import ConfigurationError, Finding
from planner.importers.documents import Document
from planner.importers.rate_grids import Grid, Named, Traffic, grid_of, scenario_of

__all__ = ["import_aibrix"]

_NEEDED: Final = ("gpu", "cost", "tputs", "indexes")
_KNOWN: Final = ("slos", "created", "e2e", "ttft")
_PROMISES: Final = {"ttft": "ttft_s", "tpot": "itl_s", "e2e": "e2e_s"}
_AXES: Final = 2


def import_aibrix(
    paths: Sequence[Path],
    catalog: Catalog,
    *,
    named: Named,
    traffic: Sequence[Traffic] | None,
    wrong: Iterable[Finding] = (),
) -> tuple[Scenario, tuple[str, ...]]:
    """The scenario that profiles and traffic describe, and notes on promises that it cannot hold.

    Args:
        paths: one JSON file for each Deployment.
        catalog: knows the GPU types and the LLM.
        named: what the files do not say.
        traffic: request shapes with their rates; None: ``wrong`` says why there are none.
        wrong: what is wrong already with what was said beside the files.

    Raises:
        ConfigurationError: anything in the files that cannot be, promises that differ between them, or names that
            the catalog does not know; all at once.
    """
    findings = list(wrong)
    documents = [document for path in paths if (document := _opened(path, findings)) is not None]
    if not documents:
        findings = findings or [Finding("", None, "PATH", "no profile", "at least one file")]
        raise ConfigurationError.from_findings(findings)
    first = documents[0]
    for document in documents:
        document.keys(_NEEDED, _KNOWN)
    grids = [_grid(document) for document in documents]
    said = [_slo(document) for document in documents]
    readable = [
        slo for slo, document in zip(said, documents, strict=True) if not document.complains_of("slos")
    ]
    _compare(first, grids, [slo for slo, _ in readable])
    each_once = list({grid.gpu: grid for grid in grids}.values())
    # Findings of all files are raised where the scenario is made of them.
    first.findings[:] = [*findings, *(each for document in documents for each in document.findings)]
    scenario = scenario_of(first, each_once, traffic, named=named, catalog=catalog, slo=said[0][0])
    return scenario, tuple(sorted({note for _, notes in said for note in notes}))


def _opened(path: Path, findings: list[Finding]) -> Document | None:
    try:
        return Document(path)
    except ConfigurationError as refusal:
        findings += refusal.findings
        return None


def _compare(first: Document, grids: Sequence[Grid], said: Sequence[Slo]) -> None:
    """Several files are of different Deployments and of the same promises."""
    names = [grid.gpu for grid in grids]
    for name in sorted({name for name in names if names.count(name) > 1}):
        first.find("gpu", f"{name} in several files", allowed="each Deployment once")
    if len({*said}) > 1:
        first.find(
            "slos",
            "other promises than in another file",
            allowed="profiles that were taken at the same promises",
        )


def _grid(document: Document) -> Grid:
    data = document.data
    gpu = data.get("gpu", document.name)
    if not isinstance(gpu, str) or not gpu:
        document.find("gpu", gpu, allowed="the name of a Deployment")
        gpu = document.name
    cost = document.number("cost", data.get("cost", 0), most=1e6)
    return Grid(gpu, cost or 0.0, _rates(document))


def _rates(document: Document) -> tuple[ShapeRate, ...]:
    """The table with rows and columns exchanged, so that rows are inputs as elsewhere."""
    axes, table = document.data.get("indexes"), document.data.get("tputs")
    if axes is None or table is None:
        return ()
    if not isinstance(axes, list) or len(axes) != _AXES:
        document.find("indexes", axes, allowed="two lists: output lengths, input lengths")
        return ()
    outputs = document.counts("indexes[0]", axes[0])
    inputs = document.counts("indexes[1]", axes[1])
    if not outputs or not inputs:
        return ()
    # A row is an output length here: read as a grid whose "inputs" are outputs, then turned.
    turned = grid_of(document, "tputs", table, inputs=outputs, outputs=inputs)
    return tuple(
        ShapeRate(input_tokens=each.output_tokens, output_tokens=each.input_tokens, rated_rps=each.rated_rps)
        for each in turned
    )


def _slo(document: Document) -> tuple[Slo, tuple[str, ...]]:
    """Promises as a service makes them; the others as notes."""
    said = document.data.get("slos")
    if said is None:
        return Slo(), ()
    if not isinstance(said, dict):
        document.find("slos", said, allowed="an object")
        return Slo(), ()
    fields: dict[str, Any] = {}
    notes: list[str] = []
    for name, value in said.items():
        target = document.number(f"slos.{name[:60]}", value)
        if target is None:
            continue
        if name == "percentile":
            fields["at"] = target if 0 < target < 100 else "mean"  # noqa: PLR2004 - a percentile
        elif name not in _PROMISES:
            notes.append(f"the promise {name} = {target:g} has no counterpart and is left to the rates")
        elif target > 0:
            fields[_PROMISES[name]] = target
    return Slo(**fields), tuple(notes)
