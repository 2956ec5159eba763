"""Writes the sections of docs/reference/conformance.md, and starts the servers for their probes."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import httpx

from tests.peer_documents.peer import serving_peer
from tests.serve.conformance import (
    chat_statements,
    kept,
    lines,
    lmi_statements,
    response_statements,
    responses,
    settings,
)
from tests.serve.conformance.asking import LMI, OPENAI, OVMS, Asker, Endpoint
from tests.serve.conformance.chats import LMI_PROBES, OVMS_PROBES, PROBES
from tests.serve.conformance.probe import Probe, result
from tests.serve.conformance.statements import table
from tests.serve.running import serving

PATH = Path(__file__).parents[3] / "docs" / "reference" / "conformance.md"
COMMAND = "uv run python -m tests.serve.conformance"
NUM_AT_ONCE = 6  # probes: a batch costs little more than one of them
PROMPTS = Path(__file__).with_name("prompts.yaml")
SERVER_OPTIONS = (
    *("--precision", "f32", "--kv-cache-dtype", "f32", "--no-prefix-caching"),
    *("--prompts", str(PROMPTS)),
)

_INTRODUCTION = """\
# Conformance

This page compares Ouzel with the documents of OpenVINO Model Server (OVMS) and LMI, parameter by
parameter. A test run on the demo models writes it (`uv run python -m tests.serve.conformance`).

*Works* means that the run saw the effect in that mode. *Refused* means that the answer named the
parameter. There is no third result: no parameter that would change an answer is accepted and
ignored. Each row that differs from its document gives the reason.

The first table has the parameters of these documents on `/v1/chat/completions`, with their lists of
unsupported parameters:

- **A** OVMS, chat completions, 2026 (with the parameters of speculative and prompt lookup decoding)
- **B** the same page of 2024, **C** of 2025
- **D** LMI 0.30, chat completions schema

Further tables have [responses](#v1responses) (**E**, **F**), LMI's [`/invocations`](#invocations),
and [chats](#with---profile-ovms-chats) and [responses](#with---profile-ovms-responses) with
`--profile ovms`. The last sections have other [statements](#statements-of-the-documents) of the
documents, and OVMS's [graphs and flags](#graphs-and-flags-of-ovms).

| parameter | in | unary | streamed | observation |
|---|---|---|---|---|
"""

_LMI_INTRODUCTION = """
## /invocations

This table has the parameters of D on LMI's own path. Streams are JSON lines, finish reasons are
LMI's, and a refusal is a 424 whose message names the parameter.

| parameter | in | unary | streamed | observation |
|---|---|---|---|---|
"""

_OVMS_INTRODUCTION = """
## With --profile ovms: chats

This table has the parameters of A, B and C on `/v3/chat/completions` of a server with that profile.
`best_of` is a number of beams, streams show the stop string, and a refusal is a 400 whose text
names the parameter. Some parameters are not read by OVMS in some requests, for example
`length_penalty` without beams. Such a parameter has no effect, and the log names it; the
[statements](#chats-a-b-c) list them.

| parameter | in | unary | streamed | observation |
|---|---|---|---|---|
"""


_STATEMENTS_INTRODUCTION = """
## Statements of the documents

The documents also state defaults, forms of answers and orders of events. *As it says* means that a
test run saw the statement hold. *Differs* means that it saw the behaviour in the last column.
"""

_STATEMENT_TABLE = """
### {title}

| statement | in | default | `--profile {profile}` | difference and reason |
|---|---|---|---|---|
"""


def own_tables(cache_dir: Path) -> str:
    """Returns the document as far as it tells of our own API."""
    with _servers(cache_dir) as servers:
        text = _INTRODUCTION.format(command=COMMAND) + _rows(servers, OPENAI, PROBES)
        text += responses.section(lambda endpoint, probes: _rows(servers, endpoint, probes))
        return text + kept.section(servers.reading)


def tables_of_others(cache_dir: Path) -> str:
    """Returns the rest: the same parameters as LMI and OVMS take them."""
    with _servers(cache_dir) as servers:
        text = _LMI_INTRODUCTION + _rows(servers, LMI, LMI_PROBES)
    with _servers(cache_dir, "--profile", "ovms") as servers:
        text += _OVMS_INTRODUCTION + _rows(servers, OVMS, OVMS_PROBES)
        text += responses.ovms_section(lambda endpoint, probes: _rows(servers, endpoint, probes))
    return text + statement_sections(cache_dir) + settings.section(cache_dir) + lines.section()


def statement_sections(cache_dir: Path) -> str:
    """Returns the sections about the documents' statements; servers of each profile answer."""
    with ExitStack() as stack:
        default, ovms, lmi = (
            stack.enter_context(serving_peer(profile, cache_dir / profile))
            for profile in ("default", "ovms", "lmi")
        )
        text = _STATEMENTS_INTRODUCTION
        for title, statements, profile in (
            ("Chats (A, B, C)", chat_statements.STATEMENTS, ovms),
            ("Responses (E)", response_statements.STATEMENTS, ovms),
            ("LMI's chats (D)", lmi_statements.STATEMENTS, lmi),
        ):
            text += _STATEMENT_TABLE.format(title=title, profile=profile.profile)
            text += table(statements, [default, profile])
    return text


@dataclass(frozen=True)
class Servers:
    reading: httpx.Client  # a client of the demo model of text
    seeing: httpx.Client  # a client of the demo model of pictures, which has the same name


@contextmanager
def _servers(cache_dir: Path, *options: str) -> Iterator[Servers]:
    seeing_options = ("--demo", "vision", "--served-model-name", "ouzel-demo")
    with (
        serving(*SERVER_OPTIONS, *options, cache_dir=cache_dir) as reading,
        serving(
            *SERVER_OPTIONS, *options, *seeing_options, cache_dir=cache_dir / "seeing"
        ) as seeing,
        httpx.Client(base_url=reading.root, timeout=None) as to_reading,
        httpx.Client(base_url=seeing.root, timeout=None) as to_seeing,
    ):
        yield Servers(to_reading, to_seeing)


def _rows(servers: Servers, endpoint: Endpoint, probes: Sequence[Probe]) -> str:
    asked_by = [
        _modes(servers.seeing if probe.is_shown else servers.reading, endpoint) for probe in probes
    ]
    with ThreadPoolExecutor(NUM_AT_ONCE) as threads:
        tried = [
            [threads.submit(result, probe, ask) for ask in modes]
            for probe, modes in zip(probes, asked_by, strict=True)
        ]
    rows = [
        (
            f"`{probe.parameter}`",
            probe.listed,
            *map(_settled, beside, repeat(probe), modes),
            probe.seen,
        )
        for probe, beside, modes in zip(probes, tried, asked_by, strict=True)
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _modes(http: httpx.Client, endpoint: Endpoint) -> list[Asker]:
    return [Asker(http, endpoint, is_stream=is_stream) for is_stream in (False, True)]


def _settled(beside_others: Future[str], probe: Probe, ask: Asker) -> str:
    """Tries a failed probe again, alone.

    Other requests of a batch change the last bits of logits, and sampling at a high temperature
    shows these bits.
    """
    return result(probe, ask) if beside_others.exception() else beside_others.result()
