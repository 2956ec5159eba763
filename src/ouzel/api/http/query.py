"""The query of a URL, with the same care as a body: what is wrong is named, what nobody knows is logged."""

from collections.abc import Collection

from starlette.datastructures import QueryParams

from ouzel.errors import InvalidRequest
from ouzel.wire.decode import log_ignored
from ouzel.wire.validation_errors import shown

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Query:
    def __init__(self, given: QueryParams, *known: str) -> None:
        """`known`: the parameters of the endpoint. Lists are spelled `name=a&name=b` or `name[]=a`."""
        self._given: dict[str, list[str]] = {}
        for name, value in given.multi_items():
            self._given.setdefault(name.removesuffix("[]"), []).append(value)
        log_ignored(self._given.keys() - set(known))

    def has(self, name: str) -> bool:
        return name in self._given

    def texts(self, name: str) -> list[str]:
        return self._given.get(name, [])

    def text(self, name: str) -> str | None:
        given = self.texts(name)
        return given[-1] if given else None

    def boolean(self, name: str) -> bool:
        """False when it is not given."""
        given = self.text(name)
        if given is None:
            return False
        if given.lower() not in _BOOLEANS:
            raise InvalidRequest(f"must be true or false, given {shown(given)}", field=name)
        return _BOOLEANS[given.lower()]

    def integer(self, name: str, default: int, *, lowest: int, highest: int) -> int:
        given = self.text(name)
        if given is None:
            return default
        try:
            value = int(given)
        except ValueError:
            raise InvalidRequest(f"must be an integer, given {shown(given)}", field=name) from None
        if not lowest <= value <= highest:
            raise InvalidRequest(f"must be between {lowest} and {highest}, given {value}", field=name)
        return value

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        given = self.text(name)
        if given is None:
            return default
        if given not in choices:
            raise InvalidRequest(f"must be one of {', '.join(choices)}, given {shown(given)}", field=name)
        return given
