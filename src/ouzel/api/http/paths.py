"""A path is read as the one that is meant, before anything else looks at it.

Clients put a base URL and an endpoint's path together in more ways than one: with a slash too many, without the `/v1`,
with a `/v1` before what stands at the root, behind a proxy that keeps its prefix. Where that leaves no doubt the
endpoint itself answers, without a redirect, which clients follow as a GET or not at all. What stays unknown is a 404
that names what may have been meant.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from difflib import get_close_matches

from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.routing_errors import UnknownUrl

_SLASHES = re.compile("/{2,}")
_MAX_SHOWN = 200
_MAX_COMPARED = 100  # characters of a path that is like none: comparing takes its time
_LIKENESS = 0.85


class Paths:
    """Knows the paths of an application, finds the path that a client means, and hints at one in errors."""

    def __init__(
        self,
        routes: Iterable[tuple[str, str]],
        *,
        prefixes: Collection[str] = (),
        shown_paths: Collection[str] = (),
        socket_paths: Collection[str] = (),
        root_path: str = "",
    ) -> None:
        """Takes `routes` as pairs of a method and a path in starlette's spelling, and the `shown_paths` that are
        compared with an unknown path. A client may leave out the first of `prefixes`.
        """
        routes = list(routes)
        self._plain = frozenset(path for _, path in routes if "{" not in path)
        patterns = [compile_path(path)[0].pattern for _, path in routes if "{" in path]
        self._others = re.compile(
            "|".join(re.sub(r"\?P<\w+>", "?:", pattern) for pattern in patterns) or "(?!)"
        )
        self._templates = [(method, compile_path(path)) for method, path in routes]
        self._prefixes = tuple(f"{prefix}/" for prefix in prefixes)
        self._shown_paths = shown_paths
        self._socket_paths = socket_paths
        self._root_path = root_path

    def __contains__(self, path: str) -> bool:
        return path in self._plain or self._others.match(path) is not None

    def template(self, path: str) -> str:
        """Returns the path as its operation spells it, without values of a client; empty if it is unknown."""
        if path in self._plain:
            return path
        return next(
            (shown for _, (pattern, shown, _) in self._templates if pattern.match(path)), ""
        )

    def meant(self, path: str) -> str:
        """Returns the known path that this one stands for, else the path as it is."""
        if path in self._plain:
            return path
        inner = self._without_root(path)
        return next((each for each in self._candidates(inner) if each in self), inner)

    def _without_root(self, path: str) -> str:
        """A proxy may pass its prefix on or take it off."""
        if self._root_path and f"{path}/".startswith(f"{self._root_path}/"):
            return path[len(self._root_path) :] or "/"
        return path

    def _candidates(self, path: str) -> Iterable[str]:
        if not path.startswith("/"):
            yield (
                "/" if path == "*" else path
            )  # OPTIONS of the whole server; else what could not be read
            return
        path = _SLASHES.sub("/", path).rstrip("/") or "/"
        yield path
        yield f"{self._prefixes[0]}{path[1:]}" if self._prefixes else path
        for prefix in self._prefixes:
            at_root = path.removeprefix(prefix[:-1])
            if path.startswith(prefix) and not at_root.startswith(
                self._prefixes
            ):  # a doubled one is a mistake
                yield at_root

    def unknown(
        self, method: str, path: str, *, main_paths: Iterable[str], is_websocket: bool
    ) -> UnknownUrl:
        """Returns the error for an unknown path, with a hint: a path like it, else the `main_paths`."""
        hint = self._socket_hint() if is_websocket else self._hint(method, path, main_paths)
        return UnknownUrl(f"unknown URL: {method} {path[:_MAX_SHOWN]}{hint}")

    def _hint(self, method: str, path: str, main_paths: Iterable[str]) -> str:
        ends = [path[match.start() :].lower() for match in re.finditer("/", path[:_MAX_SHOWN])]
        meant = (self._hinted_path(method, self.meant(end)) for end in ends if end.strip("/"))
        near = next(
            (each for each in meant if each), None
        )  # behind a prefix too many, or in other letters
        if near is None and len(path) <= _MAX_COMPARED:
            similar = get_close_matches(path, self._shown_paths, n=3, cutoff=_LIKENESS)
            near = next((each for each in similar if self._hinted_path(method, each)), None)
        if near is not None:
            return f"; did you mean {self._root_path}{near}?"
        listed = self._listed(main_paths)
        return f"; this server has no such endpoint; it has {listed}" if listed else ""

    def _hinted_path(self, method: str, path: str) -> str | None:
        """Returns the path of the endpoint that `path` leads to, with parameters by name as `{model}`.

        An id in the client's path may name no object, so that a hint with the id would promise too much.
        """
        wanted = "GET" if method == "HEAD" else method
        matching = [
            (own, shown) for own, (pattern, shown, _) in self._templates if pattern.match(path)
        ]
        of_method = [shown for own, shown in matching if own == wanted]
        plain = [
            shown for _, shown in matching if shown == path
        ]  # a 405 there names the right method
        return next(iter(of_method + plain), None)

    def _socket_hint(self) -> str:
        return (
            f"; WebSockets are opened at {self._listed(self._socket_paths)}"
            if self._socket_paths
            else ""
        )

    def _listed(self, paths: Iterable[str]) -> str:
        return ", ".join(f"{self._root_path}{path}" for path in paths)


class MeantPaths:
    """Gives the application the path that is meant; the log has the one that was sent."""

    def __init__(self, app: ASGIApp, paths: Paths) -> None:
        self._app = app
        self._paths = paths

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Changes the scope in place, for what the protocol refuses later stands there too. No coroutine of its own:
        each wake-up of a request would pass through it.
        """
        scope["path"] = self._paths.meant(scope["path"])
        return self._app(scope, receive, send)


class UnknownPath:
    """Stands for every path that no endpoint has."""

    def __init__(self, paths: Paths, main_paths: Callable[[], Iterable[str]] = tuple) -> None:
        """`main_paths` returns the most important endpoints of the models that are served now."""
        self._paths = paths
        self._main_paths = main_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise self._paths.unknown(
            scope.get("method", "GET"),
            scope["path"],
            main_paths=self._main_paths(),
            is_websocket=scope["type"] == "websocket",
        )
