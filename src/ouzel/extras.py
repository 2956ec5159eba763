"""Optional parts of this package, which need packages of their own."""


def install_hint(extra: str) -> str:
    """Returns the commands that install an extra, for an error message."""
    return f"uv sync --no-dev --extra {extra} in a clone, or pip install 'WHEEL[{extra}]'"
