"""A plan carried out from the app: off unless whoever started the server allows it."""

__all__: list[str] = []
