"""One module per group of commands: options in, exit code out."""

__all__: list[str] = []
