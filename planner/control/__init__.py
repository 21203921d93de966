"""The control plane: what clusters and metrics say, what follows from it, and how it is carried out."""

__all__: list[str] = []
