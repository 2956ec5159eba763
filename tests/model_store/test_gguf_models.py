"""A GGUF MODEL may be a file, a directory, or a repository with the name of a quantisation."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from shutil import copyfile

import pytest

from ouzel.checkpoint.model_facts import read_model_facts
from ouzel.checkpoint.model_files import read_chat_templates
from ouzel.errors import ModelLoadError
from ouzel.model_store.model_directory import locate_model
from ouzel.tokenizer.huggingface import load_tokenizer
from tests.gguf.writer import RawTensor, Value, make_gguf
from tests.http_servers import http_server

F32 = 0
SHA = "0123456789abcdef0123456789abcdef01234567"


def small_model(tokens: list[str]) -> bytes:
    """Returns a complete GGUF file: the small files of a model are made from its metadata."""
    sizes = {
        "block_count": 1,
        "embedding_length": 4,
        "feed_forward_length": 8,
        "context_length": 64,
    }
    attention: dict[str, Value] = {"head_count": 1, "layer_norm_rms_epsilon": 1e-6}
    tokenizer: dict[str, Value] = {
        "model": "gpt2",
        "pre": "qwen2",
        "tokens": tokens,
        "merges": [],
        "eos_token_id": 1,
    }
    return make_gguf(
        {
            "general.architecture": "qwen3",
            **{f"qwen3.{key}": value for key, value in sizes.items()},
            **{f"qwen3.attention.{key}": value for key, value in attention.items()},
            **{f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()},
        },
        [RawTensor("token_embd.weight", (len(tokens), 4), F32, bytes(16 * len(tokens)))],
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "models" / "Small-Q8_0.gguf"
    path.parent.mkdir()
    path.write_bytes(small_model(["a", "b"]))
    return path


def test_a_file_and_its_directory_become_the_same_model_directory(
    model: Path, tmp_path: Path
) -> None:
    cache = str(tmp_path / "cache")
    by_file, by_directory = locate_model(str(model), cache), locate_model(str(model.parent), cache)
    assert (by_file.name, by_directory.name) == ("Small-Q8_0", "models")
    assert by_file.directory == by_directory.directory
    assert (by_file.directory / model.name).resolve() == model
    config = json.loads((by_file.directory / "config.json").read_text())
    assert (config["model_type"], config["vocab_size"], config["head_dim"]) == ("qwen3", 2, 4)
    assert load_tokenizer(by_file.directory).eos_token_ids == (1,)
    assert read_model_facts(by_file.directory).file_format == "gguf"


def test_the_directory_is_made_again_when_the_file_is_another(model: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    config = locate_model(str(model), cache).directory / "config.json"
    made = config.stat().st_mtime_ns
    assert (locate_model(str(model), cache).directory / "config.json").stat().st_mtime_ns == made
    model.write_bytes(small_model(["a", "b", "c"]))
    assert (
        json.loads((locate_model(str(model), cache).directory / "config.json").read_text())[
            "vocab_size"
        ]
        == 3
    )


def test_a_chat_template_beside_the_file_goes_before_the_one_in_it(
    model: Path, tmp_path: Path
) -> None:
    cache, template = str(tmp_path / "cache"), model.with_name("chat_template.jinja")
    assert read_chat_templates(locate_model(str(model), cache).directory) is None
    template.write_text("one {{ messages }}")
    directory = locate_model(str(model), cache).directory
    found = read_chat_templates(directory)
    assert found is not None
    assert found.by_name == {"default": "one {{ messages }}"}
    template.unlink()
    assert read_chat_templates(locate_model(str(model), cache).directory) is None


def test_processes_that_make_the_directory_at_once_leave_it_to_the_first(
    model: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from ouzel.checkpoint import made_directory; "
        "from ouzel.gguf.model_directory import model_directory; write = made_directory._write\n"
        "def paused(*arguments):\n"
        "    write(*arguments); print('written', flush=True); sys.stdin.read()\n"
        "made_directory._write = paused; "
        "print(model_directory(Path(sys.argv[1]), Path(sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, str(model), str(tmp_path / "cache")]
    slow = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert slow.stdout is not None
    slow.stdout.readline()
    fast = locate_model(str(model), str(tmp_path / "cache")).directory
    made = (fast / "config.json").stat().st_ino
    output, _ = slow.communicate("go on")
    assert (slow.returncode, output.strip()) == (0, str(fast))
    assert (fast / "config.json").stat().st_ino == made
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [fast.name]


def test_a_cache_that_cannot_be_written_is_told(model: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ModelLoadError, match=r"its tokenizer cannot be stored in .*--cache-dir"):
        locate_model(str(model), str(tmp_path / "cache"))


def test_another_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").touch()
    with pytest.raises(ModelLoadError, match="is a file; give the directory with"):
        locate_model(str(tmp_path / "weights.bin"))


class Hub(BaseHTTPRequestHandler):
    """Answers for the hub with the files of one repository, owner/model."""

    directory: Path

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        names = sorted(
            file.relative_to(self.directory).as_posix() for file in self.directory.rglob("*.*")
        )
        if not path.removeprefix("/api/models").startswith("/owner/model"):
            self.answer(b"{}", status=404)
        elif path.startswith("/api/models/owner/model/tree/"):
            sizes = {name: (self.directory / name).stat().st_size for name in names}
            self.answer(
                json.dumps(
                    [{"type": "file", "path": n, "size": s, "oid": SHA} for n, s in sizes.items()]
                ).encode()
            )
        elif path.startswith("/api/"):
            self.answer(
                json.dumps(
                    {"id": "owner/model", "sha": SHA, "siblings": [{"rfilename": n} for n in names]}
                ).encode()
            )
        else:
            self.answer((self.directory / path.partition(f"/resolve/{SHA}/")[2]).read_bytes())

    def answer(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(content)),
            "ETag": f'"{hashlib.sha1(content, usedforsecurity=False).hexdigest()}"',
            "X-Repo-Commit": SHA,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def hub(directory: Path) -> Iterator[str]:
    with http_server(type("OneHub", (Hub,), {"directory": directory})) as port:
        yield f"http://127.0.0.1:{port}"


LOCATE = """
import sys
from ouzel.model_store.model_directory import locate_model
from ouzel.errors import ModelLoadError
for model in sys.argv[2:]:
    try:
        found = locate_model(model, sys.argv[1])
        files = found.directory.glob("*.gguf")
        templates = [path.name for path in found.directory.glob("*.jinja")]
        print(found.name, *sorted(path.resolve().stat().st_size for path in files), *templates)
    except ModelLoadError as error:
        print(error)
"""


def test_a_repository_with_gguf_files_is_asked_for_a_quantisation(
    model: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "repository"
    for name in (
        "Model-Q4_K_M.gguf",
        "Model-Q4_K_S.gguf",
        "Model.q8_0.gguf",
        "mmproj-Model-F16.gguf",  # has no vision encoder, so that the model reads texts only
        "mmproj-Model-Q8_0.gguf",
        "BF16/M-BF16.gguf",
    ):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        copyfile(model, directory / name)
    (directory / "config.json").write_text("{}")
    (directory / "chat_template.jinja").write_text("{{ messages }}")
    names = [
        "owner/model:Q4_K_M",
        "owner/model:Q8_0",
        "owner/model:bf16",
        "owner/model:BF16/M-BF16.gguf",
        "owner/model:Model-Q5.gguf",
        "owner/model:F16",
        "owner/model",
        "owner/m:Q8",
    ]
    names.append("owner/model:../x")
    with hub(directory) as address:
        environment = os.environ | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "hub")}
        run = subprocess.run(
            [sys.executable, "-c", LOCATE, str(tmp_path / "cache"), *names],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    there, size = "BF16, Q4_K_M, Q4_K_S, q8_0", model.stat().st_size
    *answers, unknown, wrong = run.stdout.splitlines()
    assert answers == [
        f"owner/model:Q4_K_M {size} chat_template.jinja",
        f"owner/model:Q8_0 {size} chat_template.jinja",
        f"owner/model:bf16 {size}",
        f"owner/model:BF16/M-BF16.gguf {size}",
        "owner/model has no file Model-Q5.gguf; its GGUF files: "
        "BF16/M-BF16.gguf, Model-Q4_K_M.gguf, Model-Q4_K_S.gguf, Model.q8_0.gguf",
        f"owner/model has no GGUF file of F16; there are: {there}",
        f"owner/model has GGUF files: name one as owner/model:NAME, with NAME of {there}",
    ]
    assert unknown.startswith(
        "there is no directory owner/m, and it could not be fetched from the Hugging Face hub"
    )
    assert wrong == "there is no directory or GGUF file owner/model:../x"
    fetched = {path.name for path in (tmp_path / "hub").rglob("*.gguf")}
    models = {"Model-Q4_K_M.gguf", "Model.q8_0.gguf", "M-BF16.gguf"}
    assert fetched == models | {"mmproj-Model-F16.gguf"}
