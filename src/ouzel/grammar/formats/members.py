"""Reads the members of a format object one by one; every refusal names the place."""

from collections.abc import Mapping

from ouzel.grammar.errors import GrammarError


class Members:
    """Takes members out one by one; `finish` refuses unread members."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, Mapping):
            raise GrammarError(f"{path} must be an object")
        self._left: dict[str, object] = {str(key): member for key, member in value.items()}
        self.path = path

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def place(self, name: str) -> str:
        return f"{self.path}.{name}"

    def take(self, name: str) -> object:
        if name not in self._left:
            raise GrammarError(f"{self.place(name)} is missing")
        return self._left.pop(name)

    def text(self, name: str) -> str:
        value = self.take(name)
        if not isinstance(value, str):
            raise GrammarError(f"{self.place(name)} must be a string")
        return value

    def texts(self, name: str, *, at_least: int = 1) -> list[str]:
        """Takes a list of at least `at_least` strings; an absent list counts as empty."""
        values = self.items(name, at_least=at_least)
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) != len(values):
            raise GrammarError(f"{self.place(name)} must have strings only")
        return texts

    def items(self, name: str, *, at_least: int = 1) -> list[object]:
        value = self._left.pop(name, None)
        values = [] if value is None else value
        if not isinstance(values, list | tuple):
            raise GrammarError(f"{self.place(name)} must be a list")
        if len(values) < at_least:
            raise GrammarError(
                f"{self.place(name)} must have at least {at_least}, given {len(values)}"
            )
        return list(values)

    def flag(self, name: str) -> bool:
        value = self._left.pop(name, None)
        if value is not None and not isinstance(value, bool):
            raise GrammarError(f"{self.place(name)} must be true or false")
        return bool(value)

    def integer(self, name: str) -> int | None:
        value = self._left.pop(name, None)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise GrammarError(f"{self.place(name)} must be an integer")
        return value

    def count(self, name: str) -> int | None:
        value = self.integer(name)
        if value is not None and value < 0:
            raise GrammarError(f"{self.place(name)} must be >= 0, given {value}")
        return value

    def skip(self, *names: str) -> None:
        for name in names:
            self._left.pop(name, None)

    def finish(self) -> None:
        if self._left:
            raise GrammarError(f"{self.place(next(iter(self._left)))} is not supported")
