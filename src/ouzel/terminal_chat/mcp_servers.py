"""Reads the MCP servers of `--mcp`, and makes their entries for the field `tools` of a response."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.harmless import harmless_line

_MAX_LABEL = 64
_LABEL = re.compile(rf"[A-Za-z0-9_-]{{1,{_MAX_LABEL}}}")
_SCHEMES = ("http://", "https://")
_HEADER = re.compile(rf"(?:([A-Za-z0-9_-]{{1,{_MAX_LABEL}}})=)?([^\s:=]+):[ \t]*(.*)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
Headers = Mapping[str, Mapping[str, str]]  # label -> name -> value


@dataclass(slots=True)
class McpServers:
    """The MCP servers of a chat, and the tools that the user has allowed for the whole chat."""

    urls: Mapping[str, str] = field(default_factory=dict)  # label -> URL
    names: Collection[str] = ()  # labels of servers that the server of the model knows
    asks: bool = True  # the user allows each call
    # False: the server of the model knows the URLs and headers, by their labels
    sends_urls: bool = True
    headers: Headers = field(default_factory=dict, repr=False)
    _allowed: dict[str, set[str]] = field(default_factory=dict)  # label -> names of tools

    def __bool__(self) -> bool:
        return bool(self.urls or self.names)

    @property
    def labels(self) -> list[str]:
        return [*self.urls, *self.names]

    def allow(self, label: str, tool: str) -> None:
        """Lets a tool run without a question from now on."""
        self._allowed.setdefault(label, set()).add(tool)

    def is_allowed(self, label: str, tool: str) -> bool:
        """Tells whether a tool runs without a question."""
        return not self.asks or tool in self._allowed.get(label, ())

    def ask_again(self) -> None:
        """Makes all tools wait for the user again."""
        self.asks = True
        self._allowed.clear()

    def entries(self) -> list[dict[str, object]]:
        """Returns the entries of the servers for the field `tools`."""
        return [self._entry(label) for label in self.labels]

    def _entry(self, label: str) -> dict[str, object]:
        entry: dict[str, object] = {"type": "mcp", "server_label": label}
        if self.sends_urls and label in self.urls:
            entry["server_url"] = self.urls[label]
            if headers := self.headers.get(label):
                entry["headers"] = dict(headers)
        allowed = sorted(self._allowed.get(label, ()))
        if not self.asks:
            entry["require_approval"] = "never"
        elif allowed:
            entry["require_approval"] = {"never": {"tool_names": allowed}}
        else:
            entry["require_approval"] = "always"
        return entry


def read_mcp_servers(
    values: Iterable[str], headers: Sequence[str] = (), *, asks: bool, sends_urls: bool
) -> McpServers:
    """Reads values of `--mcp`: a URL, LABEL=URL, or the label of a server of `mcp_servers`.

    `headers` are the values of `--mcp-header`. Raises InvalidOption.
    """
    urls: dict[str, str] = {}
    names: list[str] = []
    for value in values:
        label, separator, url = value.partition("=")
        if value.startswith(_SCHEMES):
            label, url = _make_label(value, urls), value
        elif separator and not url.startswith(_SCHEMES):
            raise _wrong(value)
        if not _LABEL.fullmatch(label):
            raise _wrong(value)
        if label in urls or label in names:
            raise InvalidOption(f"--mcp: names each server once, given {label!r} again")
        if url:
            urls[label] = url
        else:
            names.append(label)
    return McpServers(
        urls, names, asks=asks, sends_urls=sends_urls, headers=_read_headers(headers, urls)
    )


def _read_headers(values: Iterable[str], urls: Collection[str]) -> Headers:
    """Reads NAME: VALUE or LABEL=NAME: VALUE. No error shows a value, which may be secret."""
    read: dict[str, dict[str, str]] = {}
    labels = ", ".join(urls) or "none"
    for value in values:
        match = _HEADER.fullmatch(value)
        if match is None:
            raise InvalidOption(
                "--mcp-header: must be 'NAME: VALUE' or 'LABEL=NAME: VALUE' in one line"
            )
        label, name, text = match.groups()
        if label is None:
            if len(urls) != 1:
                raise InvalidOption(
                    f"--mcp-header: must be LABEL={harmless_line(name)}: VALUE, with the label of "
                    f"a URL of --mcp ({labels}), unless there is one URL"
                )
            [label] = urls
        elif label not in urls:
            raise InvalidOption(
                f"--mcp-header: must name a server with a URL of --mcp ({labels}), given {label!r}"
            )
        read.setdefault(label, {})[name] = _VARIABLE.sub(_read_variable, text)
    return read


def _read_variable(match: re.Match[str]) -> str:
    value = os.environ.get(match[1])
    if value is None:
        raise InvalidOption(f"--mcp-header: the environment has no variable {match[1]}")
    return value


def _wrong(value: str) -> InvalidOption:
    return InvalidOption(
        "--mcp: must be a URL that begins with http:// or https://, LABEL=URL, or the label of a "
        f"server of mcp_servers, given {harmless_line(value)!r}"
    )


def _make_label(url: str, taken: Collection[str]) -> str:
    """Returns the host and the port of a URL in the characters of a label."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    label = re.sub(r"[^A-Za-z0-9_-]+", "-", host).strip("-")[: _MAX_LABEL - 4]
    number, chosen = 1, label
    while chosen in taken:
        number += 1
        chosen = f"{label}-{number}"
    return chosen
