"""One factory per solver; an engine is imported when its solver is asked for, since loading one takes a while."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from planner.clock import Clock
from planner.optimization.backends.engine import Engine
from planner.optimization.exact import WholeProgram
from planner.optimization.heuristics.answer import HeuristicSolver
from planner.optimization.heuristics.solvers import greedy_counts
from planner.optimization.protocol import Solver

if TYPE_CHECKING:
    from planner.optimization.backends.race import Relay

__all__ = [
    "auto",
    "column_generation",
    "cost_aware",
    "cp_sat",
    "exact_engine",
    "fair_share",
    "greedy",
    "pulp_cbc",
    "pulp_highs",
    "rescale",
    "scip",
]


def auto() -> Solver:
    """HiGHS for what it proves at once, then column generation; for fleets column generation first."""
    return WholeProgram(exact_engine(), name="auto")


def exact_engine(clock: Clock | None = None) -> Engine:
    """The engine of ``auto``: turns as they were measured to pay (docs/benchmarks.md)."""
    from planner.optimization.backends.race import BySize, Relay, Turn

    at_once = Turn(_highs, most_s=0.3)
    small = partial(Relay, [at_once, Turn(_race, share=0.7), _cp_sat], clock=clock)
    # HiGHS 1.16 was seen to need forty seconds for one on such programs, and SCIP a tenth of one.
    lengths = partial(
        Relay,
        [Turn(_splitting, share=0.6), Turn(_scip, share=0.5), Turn(_column_generation, share=0.5), _cp_sat],
        clock=clock,
    )
    return BySize(small=small, lengths=lengths, large=partial(_for_fleets, clock))


def _race() -> Engine:
    """SCIP sees the program whole, column generation its parts: the plan of one often meets the bound of the other."""
    from planner.optimization.backends.race import Race

    return Race([_column_generation, _scip])


def cp_sat() -> Solver:
    """CP-SAT on the whole program, started from the greedy plan."""
    return WholeProgram(_cp_sat(), name="cp-sat", hint=greedy_counts)


def _cp_sat() -> Engine:
    from planner.optimization.backends.cpsat import CpSat

    return CpSat()


def column_generation() -> Solver:
    """Column generation; what it does not prove alone goes on to the whole program, from its plan and its bound."""
    return WholeProgram(_for_fleets(), name="column-generation")


def _for_fleets(clock: Clock | None = None) -> Relay:
    from planner.optimization.backends.race import Relay

    return Relay([_column_generation, _scip, _cp_sat], clock=clock)


def _column_generation() -> Engine:
    from planner.optimization.backends.column_generation import ColumnGeneration

    return ColumnGeneration()


def _splitting() -> Engine:
    from planner.optimization.backends.splitting import Splitting

    return Splitting()


def _highs() -> Engine:
    from planner.optimization.backends.pulp import PulpHighs

    return PulpHighs()


def pulp_highs() -> Solver:
    """PuLP with HiGHS on the whole program, from nothing: a second opinion leans on nobody's plan."""
    return WholeProgram(_highs(), name="pulp")


def pulp_cbc() -> Solver:
    """PuLP with CBC on the whole program."""
    from planner.optimization.backends.pulp import PulpCbc

    return WholeProgram(PulpCbc(), name="pulp-cbc")


def scip() -> Solver:
    """SCIP on the whole program: a second opinion beside PuLP's."""
    return WholeProgram(_scip(), name="scip")


def _scip() -> Engine:
    from planner.optimization.backends.scip import Scip

    return Scip()


def greedy() -> Solver:
    """Greedy-by-Saturation, the published baseline."""
    return HeuristicSolver("greedy")


def cost_aware() -> Solver:
    """CostAware, published; knows no budget."""
    return HeuristicSolver("cost-aware")


def fair_share() -> Solver:
    """GreedyByScore, published."""
    return HeuristicSolver("fair-share")


def rescale() -> Solver:
    """Rescale before GreedyByScore, published."""
    return HeuristicSolver("rescale")
