"""What a controller decided last, and before: from its records, or as it says itself."""

__all__: list[str] = []
