"""Reads the query of a URL as strictly as a body. The log names unknown parameters."""

from collections.abc import Collection

from starlette.datastructures import QueryParams

from ouzel.errors import InvalidRequest
from ouzel.wire.decode import log_ignored
from ouzel.wire.validation_errors import show_value

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Query:
    def __init__(self, params: QueryParams, *known: str, maps: Collection[str] = ()) -> None:
        """`known` are the parameters of the endpoint, and `maps` are its parameters with keys.

        Lists are spelled `name=a&name=b` or `name[]=a`, maps `name[key]=a`.
        """
        self._values: dict[str, list[str]] = {}
        for name, value in params.multi_items():
            self._values.setdefault(name.removesuffix("[]"), []).append(value)
        unread = self._values.keys() - set(known)
        log_ignored({name for name in unread if _split_key(name)[0] not in maps})

    def has(self, name: str) -> bool:
        return name in self._values

    def texts(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def text(self, name: str) -> str | None:
        values = self.texts(name)
        return values[-1] if values else None

    def mapping(self, name: str) -> dict[str, str]:
        """Returns the values of a parameter by their keys."""
        values = {}
        for spelled, texts in self._values.items():
            map_name, key = _split_key(spelled)
            if map_name == name:
                values[key] = texts[-1]
        return values

    def boolean(self, name: str) -> bool:
        """Returns the parameter's value, or False if it is absent."""
        text = self.text(name)
        if text is None:
            return False
        if text.lower() not in _BOOLEANS:
            raise InvalidRequest(f"must be true or false, given {show_value(text)}", field=name)
        return _BOOLEANS[text.lower()]

    def integer(self, name: str, default: int, *, lowest: int, highest: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise InvalidRequest(
                f"must be an integer, given {show_value(text)}", field=name
            ) from None
        if not lowest <= value <= highest:
            raise InvalidRequest(
                f"must be between {lowest} and {highest}, given {value}", field=name
            )
        return value

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        text = self.text(name)
        if text is None:
            return default
        if text not in choices:
            raise InvalidRequest(
                f"must be one of {', '.join(choices)}, given {show_value(text)}", field=name
            )
        return text


def _split_key(spelled: str) -> tuple[str, str]:
    """Splits `name[key]`; returns two empty texts for a name without a key."""
    name, bracket, key = spelled.partition("[")
    return (name, key[:-1]) if bracket and key.endswith("]") else ("", "")
