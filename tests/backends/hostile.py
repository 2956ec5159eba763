"""Opens each hostile model directory of `test_hostile_models.py` in a process with limits.

usage: python -m tests.backends.hostile DIRECTORY ...

Writes one JSON line for each directory: the error, the exit status, and the peak memory. The
processes are forks, so all together import Ouzel once. The kernel limits each process to MAX_BYTES
of address space beyond the address space at the fork, and to MAX_CPU_S.
"""

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

from ouzel.backends.openvino.loader import load_checkpoint
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.checkpoint.model_files import sampling_defaults
from ouzel.config import ModelConfig
from ouzel.config.weights import read_weights
from ouzel.errors import ModelLoadError
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.serve.engine_factories import expected_vocab_size, grammar_tokenizer
from ouzel.serve.output_format import read_output_format
from ouzel.tokenizer.huggingface import load_tokenizer

MAX_BYTES = 2 * 2**30
MAX_CPU_S = 60  # a start takes one or two seconds


def open_model(directory: Path) -> None:
    """Reads all files that the two processes of a server read, without compiling the graph."""
    config = read_hf_config(directory)
    grammar_tokenizer(directory, expected_vocab_size(directory))
    load_tokenizer(directory)
    ChatTemplate.load(directory, max_cpu_s=0.5)
    read_output_format(directory, ModelConfig(model=str(directory)))
    sampling_defaults(directory)
    # The weights come last: they take longest, and most directories have a fault before them.
    with tempfile.TemporaryDirectory() as cache_dir:
        load_checkpoint(directory, config, read_weights("int8"), cache_dir)


def report(directory: Path, output: int) -> None:
    limit = address_space() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    said = ""
    try:
        open_model(directory)
    except ModelLoadError as error:
        said = str(error)
    except BaseException as error:
        said = f"not a ModelLoadError: {error!r}"
    os.write(output, said.encode(errors="replace")[:60_000])


def address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main(directories: list[str]) -> None:
    for directory in directories:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            report(Path(directory), writing)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read().decode()
        _, status, usage = os.wait4(child, 0)
        line = {"said": said, "status": status, "max_bytes": usage.ru_maxrss * 1024}
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
