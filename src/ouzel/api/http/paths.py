"""Corrects the path of a request to a known path, before any other layer reads it.

Clients join a base URL and the path of an endpoint in several ways: with an extra slash, without
`/v1`, with `/v1` before a path at the root, or behind a proxy that keeps its prefix. If the
correction is unambiguous, the endpoint answers directly. There is no redirect: clients follow
redirects as GET, or not at all. For other paths the 404 suggests a path.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from difflib import get_close_matches

from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.errors import UnknownUrl

_SLASHES = re.compile("/{2,}")
_MAX_SHOWN = 200
# a longer unknown path is not compared: comparing takes time
_MAX_COMPARED = 100
_LIKENESS = 0.85


class Paths:
    """The paths of an application, and corrects or suggests paths."""

    def __init__(
        self,
        routes: Iterable[tuple[str, str]],
        *,
        prefixes: Collection[str] = (),
        shown_paths: Collection[str] = (),
        socket_paths: Collection[str] = (),
        root_path: str = "",
    ) -> None:
        """Takes `routes` as pairs of a method and a path in starlette's spelling.

        Unknown paths are compared with `shown_paths`. A client may omit the first of `prefixes`.
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
        """Returns the operation's path, without a client's values, or an empty text."""
        if path in self._plain:
            return path
        return next(
            (shown for _, (pattern, shown, _) in self._templates if pattern.match(path)), ""
        )

    def correct(self, path: str) -> str:
        """Returns the known path that the client meant, else the path without the root path.

        It tolerates doubled or trailing slashes and a missing version prefix.
        """
        if path in self._plain:
            return path
        inner = self._without_root(path)
        return next((each for each in self._candidates(inner) if each in self), inner)

    def _without_root(self, path: str) -> str:
        """Removes the root path: proxies pass their prefix on, or remove it."""
        if self._root_path and f"{path}/".startswith(f"{self._root_path}/"):
            return path[len(self._root_path) :] or "/"
        return path

    def _candidates(self, path: str) -> Iterable[str]:
        if not path.startswith("/"):
            # "*" is OPTIONS of the whole server; the other paths could not be read
            yield "/" if path == "*" else path
            return
        path = _SLASHES.sub("/", path).rstrip("/") or "/"
        yield path
        yield f"{self._prefixes[0]}{path[1:]}" if self._prefixes else path
        for prefix in self._prefixes:
            at_root = path.removeprefix(prefix[:-1])
            # a prefix twice is a mistake
            if path.startswith(prefix) and not at_root.startswith(self._prefixes):
                yield at_root

    def make_error(
        self, method: str, path: str, *, main_paths: Iterable[str], is_websocket: bool
    ) -> UnknownUrl:
        """Returns the error for an unknown path.

        It suggests a similar path, or names `main_paths`.
        """
        hint = self._socket_hint() if is_websocket else self._hint(method, path, main_paths)
        return UnknownUrl(f"unknown URL: {method} {path[:_MAX_SHOWN]}{hint}")

    def _hint(self, method: str, path: str, main_paths: Iterable[str]) -> str:
        ends = [path[match.start() :].lower() for match in re.finditer("/", path[:_MAX_SHOWN])]
        corrected = (self._hinted_path(method, self.correct(end)) for end in ends if end.strip("/"))
        # The path may have an unknown prefix, or other upper-case letters.
        near = next((each for each in corrected if each), None)
        if near is None and len(path) <= _MAX_COMPARED:
            similar = get_close_matches(path, self._shown_paths, n=3, cutoff=_LIKENESS)
            near = next((each for each in similar if self._hinted_path(method, each)), None)
        if near is not None:
            return f"; did you mean {self._root_path}{near}?"
        listed = self._listed(main_paths)
        return f"; this server has no such endpoint; it has {listed}" if listed else ""

    def _hinted_path(self, method: str, path: str) -> str | None:
        """Returns the template of the endpoint at `path`, with parameters as `{model}`, or None.

        The id in the client's path may name no object, so the hint shows the template.
        """
        wanted = "GET" if method == "HEAD" else method
        matching = [
            (own, shown) for own, (pattern, shown, _) in self._templates if pattern.match(path)
        ]
        of_method = [shown for own, shown in matching if own == wanted]
        # a 405 at this path names the right method
        plain = [shown for _, shown in matching if shown == path]
        return next(iter(of_method + plain), None)

    def _socket_hint(self) -> str:
        if not self._socket_paths:
            return ""
        return f"; WebSockets are opened at {self._listed(self._socket_paths)}"

    def _listed(self, paths: Iterable[str]) -> str:
        return ", ".join(f"{self._root_path}{path}" for path in paths)


class PathCorrection:
    """Replaces the path of each request by the known path. The log shows the original path."""

    def __init__(self, app: ASGIApp, paths: Paths) -> None:
        self._app = app
        self._paths = paths

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Changes the scope in place: an error of the protocol may be added to this scope later.

        This is not a coroutine, because each wake-up of a request would pass through it.
        """
        scope["path"] = self._paths.correct(scope["path"])
        return self._app(scope, receive, send)


class UnknownPath:
    """Answers every path without an endpoint by an error."""

    def __init__(self, paths: Paths, main_paths: Callable[[], Iterable[str]] = tuple) -> None:
        """`main_paths` returns the main endpoints of the models that are served now."""
        self._paths = paths
        self._main_paths = main_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise self._paths.make_error(
            scope.get("method", "GET"),
            scope["path"],
            main_paths=self._main_paths(),
            is_websocket=scope["type"] == "websocket",
        )
