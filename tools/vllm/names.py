"""Reads the names and signatures of vLLM that Ouzel uses from vLLM's source, without importing it.

    python -m tools.vllm.names DIRECTORY          compares them with the tests' stand-in for vLLM
    python -m tools.vllm.names DIRECTORY --write  writes the file of the stand-in again

DIRECTORY is the `vllm` of an unpacked wheel: `pip download --no-deps vllm==0.33.0`, `unzip -q
vllm-*.whl 'vllm/*.py'`.
"""

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

NAMES = (
    Path(__file__).parents[2] / "tests" / "backends" / "vllm" / "stand_in" / "vllm" / "names.json"
)
_TOKENS_API = "entrypoints/scale_out/token_in_token_out/protocol.py"

# class of vLLM -> its file; the fields and parameters that Ouzel uses must be among the class's
FIELDS = {
    "EngineArgs": "engine/arg_utils.py",
    "SamplingParams": "sampling_params.py",
    "StructuredOutputsParams": "sampling_params.py",
    "ReasoningConfig": "config/reasoning.py",
    "StructuredOutputsConfig": "config/structured_outputs.py",
    "TokensPrompt": "inputs/llm.py",
    "Logprob": "logprobs.py",
    "CompletionOutput": "outputs.py",
    "SchedulerStats": "v1/metrics/stats.py",
    "RequestStateStats": "v1/metrics/stats.py",
    "SpecDecodingStats": "v1/spec_decode/metrics.py",
    "GenerateRequest": _TOKENS_API,
    "GenerateLogProb": _TOKENS_API,
    "GenerateLogProbsContent": _TOKENS_API,
    "GenerateStreamChoiceBase": _TOKENS_API,
    "GenerateResponseBase": _TOKENS_API,
    "GenerateStreamResponseBase": _TOKENS_API,
    "ModelCard": "entrypoints/serve/engine/protocol.py",
    "UsageInfo": "entrypoints/serve/engine/protocol.py",
    "PromptTokenUsageInfo": "entrypoints/serve/engine/protocol.py",
    "ErrorInfo": "entrypoints/serve/engine/protocol.py",
    "StreamOptions": "entrypoints/generate/base/protocol.py",
}
METHODS = {
    "LLMEngine": (
        "v1/engine/llm_engine.py",
        ("from_engine_args", "add_request", "abort_request", "has_unfinished_requests", "step"),
    ),
    "BaseRenderer": ("renderers/base.py", ("render_cmpl",)),
    "RequestOutput": ("outputs.py", ("__init__",)),
    "StatLoggerBase": (
        "v1/metrics/loggers.py",
        ("__init__", "record", "log_engine_initialized", "log"),
    ),
    "InprocClient": ("v1/engine/core_client.py", ("shutdown",)),
    "VLLMValidationError": ("exceptions.py", ("__init__",)),
}
CONSTANTS = {
    "FINISH_REASON_STRINGS": "v1/engine/__init__.py",
    "MAX_LOGPROB_TOKEN_IDS": "sampling_params.py",
}
TEXTS = {  # file -> texts that the file must contain
    "entrypoints/scale_out/token_in_token_out/api_router.py": [
        "/inference/v1/generate",
        "/inference/v1/abort_requests",
    ],
    "entrypoints/scale_out/token_in_token_out/serving.py": [
        'f"generate-tokens-{self._base_request_id('
    ],
    "entrypoints/serve/instrumentator/health.py": ['"/health"'],
    "entrypoints/serve/instrumentator/basic.py": ['"/version"'],
    "entrypoints/openai/models/api_router.py": ['"/v1/models"'],
    "v1/metrics/loggers.py": [
        '"vllm:num_requests_running"',
        '"vllm:num_requests_waiting"',
        '"vllm:kv_cache_usage_perc"',
        '"vllm:prefix_cache_queries"',
        '"vllm:prefix_cache_hits"',
        '"vllm:num_preemptions"',
        '"vllm:cache_config_info"',
    ],
    "envs.py": [
        "VLLM_ENABLE_V1_MULTIPROCESSING",
        "VLLM_WORKER_MULTIPROC_METHOD",
        "VLLM_CONFIGURE_LOGGING",
        "VLLM_NO_USAGE_STATS",
    ],
    "v1/metrics/stats.py": ["self.num_preempted_reqs", "queries: int", "hits: int"],
    "v1/engine/llm_engine.py": ["self.renderer = ", "self.engine_core = ", "self.vllm_config = "],
    "usage/usage_lib.py": ["OPENAI_API_SERVER = "],
    "sampling_params.py": ["DELTA = ", "if not self.bad_words:\n            return"],
    "exceptions.py": ["class VLLMServerError"],
    "inputs/llm.py": ["cache_salt: NotRequired[str]"],
}


def read_names(source: Path) -> dict[str, object]:
    """Returns the names and signatures. Raises KeyError if one is missing."""
    fields = {name: sorted(_fields(_class(source / path, name))) for name, path in FIELDS.items()}
    methods = {
        name: {method: _parameters(_class(source / path, name), method) for method in wanted}
        for name, (path, wanted) in METHODS.items()
    }
    constants = {name: _constant(source / path, name) for name, path in CONSTANTS.items()}
    for path, texts in TEXTS.items():
        content = (source / path).read_text()
        for text in texts:
            if text not in content:
                raise KeyError(f"{path}: {text}")
    version = ast.literal_eval(_version(source))
    return {"version": version, "fields": fields, "methods": methods, "constants": constants}


def _version(source: Path) -> str:
    for line in (source / "_version.py").read_text().splitlines():
        name, equals, value = line.partition(" = ")
        if equals and name.split(" = ")[0].startswith("__version__"):
            return value.rsplit(" = ", 1)[-1]
    raise KeyError("__version__")


def _class(path: Path, name: str) -> ast.ClassDef:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise KeyError(f"{path}: class {name}")


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id


def _parameters(node: ast.ClassDef, method: str) -> list[str]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == method:
            arguments = each.args
            return [
                argument.arg
                for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            ][1:]
    raise KeyError(f"{node.name}.{method}")


def _constant(path: Path, name: str) -> object:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == name for each in node.targets
        ):
            value = ast.literal_eval(node.value)
            return list(value) if isinstance(value, tuple) else value
    raise KeyError(f"{path}: {name}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    found = json.dumps(read_names(chosen.directory), indent=1) + "\n"
    if chosen.write:
        NAMES.write_text(found)
    elif found != NAMES.read_text():
        sys.stderr.write(
            f"{chosen.directory} differs from {NAMES}: --write, and look at the difference\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
