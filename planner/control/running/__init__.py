"""The controller: configuration, leadership, the loop of cycles, its records, and the server that it can be asked at."""

__all__: list[str] = []
