"""AIConfigurator (PyPI ``aiconfigurator`` 0.12, an extra) as a performance source: step times by its tables, offline.

It says how long one prefill and one decoding step take; how requests share steps and wait is our queueing model's.
"""

from planner.performance.aiconfigurator.source import AiconfiguratorSource, from_knowledge

__all__ = ["AiconfiguratorSource", "from_knowledge"]
