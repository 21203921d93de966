"""Reports of load tests and live metrics -> load points.

The format is told by the content, never by the name. Formats: guidellm (version 2), inference-perf
life cycles, ``vllm bench serve``, aiperf (JSON and CSV), llm-d-benchmark 0.1, 0.2 and 0.2.1,
Prometheus text of a vLLM or SGLang server over time, recorded requests of a vLLM run, and our own profile tables.
"""

from planner.importers.reports.reading import FORMATS, read_reports

__all__ = ["FORMATS", "read_reports"]
