"""The examples of the documents run against `ouzel serve`, and give the answers shown."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
import trustme
from _pytest.mark.structures import ParameterSet

from tests.documents.examples import BLOCKS
from tests.documents.markdown import Block
from tests.documents.shell import Command, read_commands, send_curl
from tests.serve.answers import Json
from tests.serve.running import RunningServer, serving

ADDRESSES = re.compile(r"(https?://)?(127\.0\.0\.1|localhost):8000")
API_KEY = "one-key"
RUN = [block for block in BLOCKS if not block.reason]
# tests/serve/test_retrieval.py, tests/clients and tests/api run the programs of these pages.
OF_OTHERS = (
    "docs/how-to/embeddings.md",
    "docs/how-to/retrieval.md",
    "docs/how-to/send-sounds.md",
    "docs/how-to/speech.md",
    "docs/how-to/transcriptions.md",
)
PYTHON = [block for block in RUN if block.language == "python" and block.document not in OF_OTHERS]
CURL = [
    block
    for block in RUN
    if block.language == "sh" and any(each.program == "curl" for each in read_commands(block.text))
]
SESSIONS = [block for block in CURL if read_commands(block.text)[0].program == "ouzel"]
# tests/cli starts servers with the options of the other pages.
ALWAYS = ("docs/how-to/require-api-keys.md", "docs/how-to/serve-over-tls.md")


def list_cases(blocks: Iterable[Block], is_light: Callable[[str], bool]) -> list[ParameterSet]:
    """Returns a case for each block; with `--release` only, unless its document is light."""
    heavy = pytest.mark.release("examples of documents that start servers or import frameworks")
    return [
        pytest.param(block, id=str(block), marks=() if is_light(block.document) else heavy)
        for block in blocks
    ]


def list_first_blocks(blocks: Iterable[Block]) -> list[Block]:
    """Returns the first block of each document; CONTRIBUTING.md quotes files only."""
    firsts: dict[str, Block] = {}
    for block in blocks:
        firsts.setdefault(block.document, block)
    firsts.pop("CONTRIBUTING.md", None)
    return list(firsts.values())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    names = ("--served-model-name", "ouzel-demo", "--served-model-name", "ouzel")
    with serving(*names, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.mark.parametrize("block", [each for each in CURL if each not in SESSIONS], ids=str)
def test_curl_gives_the_answer_shown(server: RunningServer, block: Block) -> None:
    commands = [lead_to(server, command) for command in read_commands(block.text)]
    answers = [send_curl(command, {}) for command in commands]

    for answer in answers:
        assert answer.is_success, answer.text
    if block.shown:
        check_shown(answers[-1].json()["choices"][0]["message"], block.shown)


@pytest.mark.parametrize(
    "first",
    list_cases(list_first_blocks(PYTHON), lambda name: not name.startswith("docs/connect/")),
)
def test_the_python_blocks_of_a_page_run_as_one_program(
    server: RunningServer, first: Block
) -> None:
    texts = [block.text for block in PYTHON if block.document == first.document]
    program = "\n".join(texts).replace("http://127.0.0.1:8000", server.root)
    program = program.replace("range(10_000)", "range(100)")  # a batch of 10,000 takes a minute

    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "API_KEY": API_KEY},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


@pytest.mark.parametrize("block", list_cases(SESSIONS, ALWAYS.__contains__))
def test_a_server_with_the_options_answers(block: Block, tmp_path: Path) -> None:
    """The block starts a server on a demo model; its curl commands succeed."""
    write_files(tmp_path)
    names = [path.name for path in tmp_path.iterdir()]
    paths = {name: str(tmp_path / name) for name in names} | {"/run/ouzel/": f"{tmp_path}/"}
    [serve, *others] = read_commands(replace_all(block.text, paths))
    arguments = replace_ports(serve.words[2:])

    with serving(*arguments, cache_dir=tmp_path / "cache") as server:
        answers = [send_curl(lead_to(server, each), {"API_KEY": API_KEY}) for each in others]

    for answer in answers:
        assert answer.is_success, answer.text
    if block.shown:
        check_shown(answers[-1].json()["choices"][0]["message"], block.shown)


def write_files(directory: Path) -> None:
    """Writes the files that the documents' commands name."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    certificate.private_key_pem.write_to_path(directory / "key.pem")
    for pem in (*certificate.cert_chain_pems, authority.cert_pem):
        pem.write_to_path(directory / "cert.pem", append=True)
    (directory / "keys.txt").write_text(f"{API_KEY}\n")
    prompts = next(block for block in BLOCKS if block.text.startswith("# prompts.yaml\n"))
    (directory / "prompts.yaml").write_text(prompts.text)


def replace_all(text: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        text = text.replace(old, new)
    return text


def replace_ports(arguments: tuple[str, ...]) -> list[str]:
    """Replaces fixed ports by 0, a free port."""
    flags = ("", *arguments)
    return [
        "0" if flag.endswith("port") else word for flag, word in zip(flags, arguments, strict=False)
    ]


def lead_to(server: RunningServer, command: Command) -> Command:
    """Replaces the addresses of the documents by addresses of the server."""
    words = [ADDRESSES.sub(server.root, word) for word in command.words]
    ports = {"http://127.0.0.1:9090": server.metrics_root}
    return Command(command.variables, tuple(replace_all(word, ports) for word in words))


def check_shown(message: Json, shown: str) -> None:
    """Compares a message with a JSON block without ids, or its text with a quotation."""
    if shown.startswith("{"):
        assert remove_ids(message) == remove_ids(json.loads(shown))
    else:
        assert message["content"] == shown


def remove_ids(message: Json) -> Json:
    calls = [
        {name: value for name, value in call.items() if name != "id"}
        for call in message.get("tool_calls", [])
    ]
    return {**message, "tool_calls": calls}
