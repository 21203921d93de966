"""Grids of rates by request shape -> a scenario: one service, a variant for each GPU type, pools without limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.hardware import Accelerator, Pool
from models.ids import AcceleratorId, LlmId, PoolId, ServiceId, VariantId
from models.llm import Llm
from models.scenario import Mode, Scenario
from models.shape_rate import ShapeRate
from models.variant import Capacity, Cost, Variant
from models.workload import Bucket, Routing, Service, Slo
from planner.catalog import Catalog
from planner.errors import CatalogError, nearest
from planner.importers.documents import Document, identifier

__all__ = ["Grid", "Named", "Traffic", "grid_of", "scenario_of"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests of one shape: input and output length in tokens, rate in req/s."""

    input_tokens: int
    output_tokens: int
    arrival_rps: float


@dataclass(frozen=True, slots=True)
class Grid:
    """What one replica on one GPU type carries, shape by shape.

    Attributes:
        gpu: name in the file.
        cost_per_h: price of one replica, as the file states it.
        rates: in the order of the file; 0 req/s: the shape cannot be served.
    """

    gpu: str
    cost_per_h: float
    rates: tuple[ShapeRate, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """What the file does not say, from whoever imports it.

    Attributes:
        llm: name of the LLM in the catalog.
        accelerators: catalog name by name in the file; a name that is not here is looked up as it is.
        service: name of the service.
    """

    llm: str
    accelerators: Mapping[str, str]
    service: str = "imported"


def grid_of(
    document: Document, path: str, rows: object, *, inputs: Sequence[int], outputs: Sequence[int]
) -> tuple[ShapeRate, ...]:
    """Rates of a table with a row for each input and a column for each output length; findings go to the document."""
    if not isinstance(rows, list) or len(rows) != len(inputs):
        document.find(path, rows, allowed=f"{len(inputs)} rows, one for each input length")
        return ()
    rates: list[ShapeRate] = []
    for row, input_tokens in enumerate(inputs):
        cells = rows[row]
        where = f"{path}[{row}]"
        if not isinstance(cells, list) or len(cells) != len(outputs):
            document.find(where, cells, allowed=f"{len(outputs)} rates, one for each output length")
            continue
        for column, output_tokens in enumerate(outputs):
            rate = document.number(f"{where}[{column}]", cells[column], most=1e7)
            if rate is not None:
                rates.append(
                    ShapeRate(input_tokens=input_tokens, output_tokens=output_tokens, rated_rps=rate)
                )
    return tuple(rates)


def scenario_of(
    document: Document,
    grids: Sequence[Grid],
    traffic: Sequence[Traffic] | None,
    *,
    named: Named,
    catalog: Catalog,
    slo: Slo | None = None,
) -> Scenario:
    """The scenario: buckets are routed by length, pools are unlimited, replicas cost what the file says.

    Shapes without traffic are left out of the service, not out of the rates. Traffic that could not be read is None:
    what is wrong with it was said.

    Raises:
        ConfigurationError: findings of the document, names that the catalog does not know, or no traffic.
    """
    llm = _llm(document, named.llm, catalog)
    accelerators = {grid.gpu: _accelerator(document, grid.gpu, named, catalog) for grid in grids}
    ids = [identifier(grid.gpu) for grid in grids]
    for again in sorted({name for name in ids if ids.count(name) > 1}):
        document.find(again, f"the name {again} for several GPU types", allowed="names that differ")
    busy = [each for each in traffic or () if each.arrival_rps > 0]
    if not busy and traffic is not None:
        document.find("", "no traffic", allowed="at least one shape with requests")
    total = math.fsum(each.arrival_rps for each in busy)
    if not math.isfinite(total) or total > 1e9:  # noqa: PLR2004 - the largest rate of a scenario
        document.find("", f"{total:g} req/s", allowed="at most 1e9 req/s")
    document.check()
    known = {gpu: entry for gpu, entry in accelerators.items() if entry is not None}
    pools = sorted({entry.id for entry in known.values()})
    return Scenario(
        name=document.name,
        description=f"Rates by request shape, imported from {document.name}.",
        mode=Mode.UNCONSTRAINED,
        services=(
            Service(
                id=ServiceId(identifier(named.service)),
                llm=LlmId(named.llm) if llm is None else llm.id,
                buckets=tuple(_bucket(each) for each in busy),
                routing=Routing.BY_LENGTH,
                slo=slo or Slo(),
                variants=tuple(_variant(grid, known[grid.gpu].id) for grid in grids),
            ),
        ),
        pools=tuple(Pool(id=PoolId(identifier(name)), accelerator=name) for name in pools),
    )


def _bucket(traffic: Traffic) -> Bucket:
    return Bucket(
        id=f"in{traffic.input_tokens}-out{traffic.output_tokens}",
        arrival_rps=traffic.arrival_rps,
        input_tokens=traffic.input_tokens,
        output_tokens=traffic.output_tokens,
    )


def _variant(grid: Grid, accelerator: AcceleratorId) -> Variant:
    return Variant(
        id=VariantId(identifier(grid.gpu)),
        accelerator=accelerator,
        cost=Cost(usd_per_h=grid.cost_per_h),
        capacity=Capacity(by_shape=grid.rates),
    )


def _llm(document: Document, name: str, catalog: Catalog) -> Llm | None:
    try:
        return catalog.llm(name)
    except CatalogError:
        near = nearest(name, catalog.llms)
        allowed = "an LLM that 'fleetplan catalog list' shows"
        document.find_option("--llm", name, allowed=allowed, suggestion=near)
        return None


def _accelerator(document: Document, gpu: str, named: Named, catalog: Catalog) -> Accelerator | None:
    name = named.accelerators.get(gpu, gpu)
    try:
        return catalog.accelerator(name)
    except CatalogError:
        near = nearest(name, catalog.accelerators)
        if gpu in named.accelerators:
            allowed = "an accelerator that 'fleetplan catalog list' shows"
            document.find_option("--accelerator", f"{gpu}={name}", allowed=allowed, suggestion=near)
        else:
            allowed = f"an accelerator of the catalog; name it with --accelerator {gpu}=NAME"
            document.find(gpu, name, allowed=allowed, suggestion=near)
        return None
