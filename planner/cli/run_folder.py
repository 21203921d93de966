"""The folder that ``simulate -o`` writes: figures, tables, pictures; the whole folder in one move, or nothing of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from models.simulation import Outcome, TwinSpec
from planner.cli.folders import refuse, refuse_unwritable, whole_folder
from planner.cli.tables import Coded, TableWriter

if TYPE_CHECKING:
    from models.replay import Replay
    from planner.replaying import Run

__all__ = ["RunFolder", "check_run_folder", "summary_text"]

SUMMARY: Final = "summary.json"
_HEAD: Final = '{\n "kind": "replay"'
_OUTCOMES: Final = tuple(outcome.name.lower() for outcome in Outcome)


def summary_text(replay: Replay) -> str:
    """The figures as one JSON document."""
    from models import SCHEMA

    document = {"kind": "replay", "schema": SCHEMA, **replay.model_dump(mode="json")}
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def check_run_folder(path: Path, *, force: bool = False) -> None:
    """Refuse a folder that could not be written, or that is not ours.

    Args:
        path: missing, empty, or written by us before.
        force: replace a folder that holds something else.

    Raises:
        ConfigurationError: says which of these.
    """
    refuse_unwritable(path)
    folder = path.resolve()
    if force or not folder.exists() or not any(folder.iterdir()):
        return
    summary = folder / SUMMARY
    if not summary.is_file() or not summary.read_text(encoding="utf-8", errors="replace").startswith(_HEAD):
        refuse(
            path,
            "a folder that this command did not write",
            "a new or empty folder, or --force to replace it",
        )


@dataclass(slots=True)
class RunFolder:
    """Collects what is written, in a folder beside the one that it will become.

    Attributes:
        path: of the folder.
        form: of tables.
    """

    path: Path
    form: str
    _made: Path = field(default_factory=Path)
    _open: ExitStack = field(default_factory=ExitStack)

    @contextmanager
    def writing(self) -> Iterator[RunFolder]:
        """Inside, everything can be written; at the end the folder is there, and without the end it is not.

        Raises:
            ConfigurationError: it cannot be written; nothing was left behind.
        """
        # The tables, named last, are closed before the folder moves.
        with whole_folder(self.path) as self._made, self._open:
            yield self

    def sink_of(self, policy: str, twin: TwinSpec) -> Callable[[Mapping[str, Any]], None]:
        """Who writes the rows of a policy's requests as they end."""
        folder = self._made / policy
        folder.mkdir()
        writer = self._open.enter_context(TableWriter(folder / "requests", self.form))
        names = [service.name for service in twin.services]

        def write(rows: Mapping[str, Any]) -> None:
            named = {"service": Coded(rows["service"], names), "outcome": Coded(rows["outcome"], _OUTCOMES)}
            writer.write({name: named.get(name, column) for name, column in rows.items()})

        return write

    def add(self, run: Run) -> None:
        """Write tables over time and of replicas of a run."""
        folder = self._made / run.figures.policy
        result = run.result
        time_s = result.time["time_s"]
        services = [service.name for service in run.twin.services]
        with TableWriter(folder / "services", self.form) as table:
            for k, service in enumerate(services):
                columns = {
                    name.rpartition(":")[2]: column
                    for name, column in result.time.items()
                    if name.rpartition(":")[0] == service
                }
                table.write({"time_s": time_s, "service": Coded(np.full(len(time_s), k), services)} | columns)
        variants = list(result.variants)
        with TableWriter(folder / "variants", self.form) as table:
            for k, name in enumerate(variants):
                coded = Coded(np.full(len(time_s), k), variants)
                table.write({"time_s": time_s, "variant": coded} | result.variants[name])
        self._add_replicas(folder, run)

    def _add_replicas(self, folder: Path, run: Run) -> None:
        lives = run.result.replicas
        nan = float("nan")
        with TableWriter(folder / "replicas", self.form) as table:
            table.write(
                {
                    "replica": np.arange(len(lives)),
                    "name": Coded(np.arange(len(lives)), [life.name for life in lives]),
                    "variant": Coded(np.arange(len(lives)), [life.variant for life in lives]),
                    "node": Coded(np.arange(len(lives)), [life.node for life in lives]),
                    "state": Coded(np.arange(len(lives)), [life.state.name.lower() for life in lives]),
                    "created_s": np.array([life.created_s for life in lives], float),
                    "ready_s": np.array([nan if e.ready_s is None else e.ready_s for e in lives], float),
                    "removed_s": np.array(
                        [nan if e.removed_s is None else e.removed_s for e in lives], float
                    ),
                    "busy_s": np.array([life.busy_s for life in lives], float),
                    "gpu_s": np.array([life.gpu_s for life in lives], float),
                    "cost_usd": np.array([life.cost_usd for life in lives], float),
                    "energy_j": np.array([life.energy_j for life in lives], float),
                }
            )

    def add_trace(self, run: Run) -> None:
        """Write a run as Chrome and Perfetto show it."""
        path = self._made / run.figures.policy / "chrome-trace.json"
        with path.open("w", encoding="utf-8") as file:
            json.dump(run.result.chrome_trace(), file, separators=(",", ":"))

    def add_summary(self, replay: Replay) -> None:
        """Write the figures of all runs."""
        (self._made / SUMMARY).write_text(summary_text(replay), encoding="utf-8")

    def add_plots(self, runs: Sequence[Run], *, targets_s: Sequence[float], saturated: float | None) -> None:
        """Draw all runs beside each other, as PNG and SVG.

        Raises:
            ConfigurationError: what draws is not installed.
        """
        for name, chart in _charts(runs, targets_s, saturated).items():
            for suffix in ("png", "svg"):
                _save(chart, self._made / f"{name}.{suffix}")


def _charts(runs: Sequence[Run], targets_s: Sequence[float], saturated: float | None) -> dict[str, Any]:
    from planner.charts import replay as charts
    from planner.replaying import series

    policies = [run.figures.policy for run in runs]
    failures = series.failure_rows(runs)
    made = {
        "traffic": charts.traffic_chart(series.traffic_rows(runs)),
        "replicas": charts.replica_chart(series.replica_rows(runs)),
        "kv": charts.kv_chart(series.kv_rows(runs), saturated=saturated),
        "ttft": charts.ttft_chart(series.ttft_rows(runs), targets_s=targets_s),
    }
    return made | ({"failures": charts.failure_chart(failures, policies)} if failures else {})


def _save(chart: Any, path: Path) -> None:  # noqa: ANN401 - an Altair chart
    from planner.charts import save_chart

    save_chart(chart, path)
