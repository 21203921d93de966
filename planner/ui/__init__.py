"""The what-if app: pages for people who own capacity."""

__all__: list[str] = []
