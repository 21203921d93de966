"""Traffic to replay: readers of traces and generators of synthetic ones, streaming."""

__all__: list[str] = []
