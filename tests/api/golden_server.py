"""Starts a server of a small checkpoint that makes vectors or scores, computed in float32."""

from contextlib import AbstractContextManager
from pathlib import Path

from ouzel.checkpoint.sentence_files import ModelKind, read_sentence_files
from ouzel.tokenizer.huggingface import load_tokenizer
from tests.api.serving import RunningServer, running_server
from tests.backends.test_openvino_sentences import read_golden


def golden_server(
    name: str,
    kind: ModelKind,
    cache_dir: Path,
    *,
    directory: Path | None = None,
    **model_options: object,
) -> AbstractContextManager[RunningServer]:
    """Starts a server of the golden checkpoint, or of its conversion in the `directory`."""
    directory = directory or read_golden(name).directory
    model = {
        "model": str(directory),
        "weights": "f32",
        "cache_dir": str(cache_dir),
        **model_options,
    }
    engine = {"precision": "f32", "kv_cache_dtype": "f32", "kv_cache_gib": 0.01, "num_threads": 1}
    return running_server(
        {"model": model, "engine": engine},
        engine_factory="ouzel.serve.engine_factories:openvino_engine",
        tokenizer=load_tokenizer(directory),
        has_chat_template=False,
        sentences=read_sentence_files(directory, kind),
    )
