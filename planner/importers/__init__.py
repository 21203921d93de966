"""Other tools' files -> nouns. One module per format; each says what it leaves out and why."""

from planner.importers.aiconfigurator import Imported, Skip, import_aiconfigurator
from planner.importers.solver_solutions import read_solver_solution
from planner.importers.thinning import for_planning

__all__ = ["Imported", "Skip", "for_planning", "import_aiconfigurator", "read_solver_solution"]
