"""The published scaling heuristics as solvers: baselines, hints, and what we are measured by.

The rules themselves are in :mod:`planner.saturation.published`, where the twin and the control loop find them too; here
a problem becomes what they read, and their targets become a solution.
"""

from planner.optimization.heuristics.answer import HeuristicSolver, nodes_needed
from planner.optimization.heuristics.solvers import HEURISTICS, Heuristic, Outcome

__all__ = ["HEURISTICS", "Heuristic", "HeuristicSolver", "Outcome", "nodes_needed"]
