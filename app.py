"""``streamlit run app.py``: the what-if app."""

from planner.ui.frame import show

show()
