"""The app as ``fleetplan ui`` starts it; ``app.py`` at the top of the repository is the same."""

from planner.ui.frame import show

show()
