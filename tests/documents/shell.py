"""Divides the `sh` blocks of documents into commands, and sends their `curl` commands."""

import argparse
import re
import shlex
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

import httpx

_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_SEPARATORS = {"&&", "||", "|", ";", "&"}


@dataclass(frozen=True)
class Command:
    variables: Mapping[str, str]  # assignments before the program
    words: tuple[str, ...]  # the program and its arguments

    @property
    def program(self) -> str:
        return self.words[0] if self.words else ""


def read_commands(text: str) -> list[Command]:
    """Returns the commands of a block; `uv run … ouzel …` becomes a command of `ouzel`.

    It understands the subset that the documents use: quotes, comments, continued lines, pipes,
    lists.
    """
    text = re.sub(r"<<'(\w+)'\n.*?^\1$", "", text.replace("\\\n", " "), flags=re.M | re.S)
    text = re.sub(r"\$\((.*?)\)", "substituted", text)
    text = re.sub(r"\$'((?:[^'\\]|\\.)*)'", _quote_escapes, text)
    commands = []
    words: list[str] = []
    for line in _read_lines(text):
        for word in [*line, ";"]:
            if word in _SEPARATORS:
                if words:
                    commands.append(_make_command(words))
                words = []
            else:
                words.append(word)
    return commands


def _quote_escapes(match: re.Match[str]) -> str:
    """Replaces escapes of bash's $'…', such as \\n."""
    return shlex.quote(match[1].encode().decode("unicode_escape"))


def _read_lines(text: str) -> list[list[str]]:
    """Returns the words of each line; an open quotation continues on the next line."""
    lines = []
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        lexer = shlex.shlex(pending, posix=True, punctuation_chars="&|;")
        lexer.whitespace_split = True
        try:
            lines.append(list(lexer))
        except ValueError:  # an open quotation
            continue
        pending = ""
    assert not pending, f"a quotation is not closed: {pending}"
    return lines


def _make_command(words: list[str]) -> Command:
    num_assignments = next(
        (index for index, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words)
    )
    pairs = (word.partition("=") for word in words[:num_assignments])
    rest = words[num_assignments:]
    if rest[:2] == ["uv", "run"] and "ouzel" in rest:
        rest = rest[rest.index("ouzel") :]
    return Command({name: value for name, _, value in pairs}, tuple(rest))


def send_curl(command: Command, variables: Mapping[str, str]) -> httpx.Response:
    """Sends the request of a `curl` command without curl, which a test machine may lack."""
    parser = argparse.ArgumentParser(prog="curl")
    parser.add_argument("url")
    parser.add_argument("-H", action="append", dest="headers", default=[])
    parser.add_argument("-d", "--data-binary", dest="data")
    parser.add_argument("-i", "-s", "-N", action="store_true")
    parser.add_argument("--unix-socket")
    parser.add_argument("--cacert")
    given = parser.parse_args(
        [Template(word).safe_substitute(variables) for word in command.words[1:]]
    )
    url = given.url if "://" in given.url else f"http://{given.url}"
    headers = dict(header.split(": ", 1) for header in given.headers)
    trusted = ssl.create_default_context(cafile=given.cacert)
    transport = httpx.HTTPTransport(uds=given.unix_socket, verify=trusted)
    method = "GET" if given.data is None else "POST"
    if given.data is not None:
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")  # curl's default
    data = None if given.data is None else given.data.encode()
    with httpx.Client(transport=transport, timeout=None) as client:
        return client.request(method, url, content=data, headers=headers)
