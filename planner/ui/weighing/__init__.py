"""Trade-offs: two objectives weighed, one of their plans taken up, and what the answer hangs on."""

__all__: list[str] = []
