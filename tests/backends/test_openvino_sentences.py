"""Compares vectors and scores in float32 with sentence-transformers.

Qwen3-Reranker's scores are compared with the code on its card.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.compilation import capabilities
from ouzel.backends.openvino.library import ov
from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.engine.base import Engine
from ouzel.errors import ModelLoadError
from ouzel.pooling import Pooling
from ouzel.sampling import SamplingParams
from ouzel.serve.engine_factories import openvino_engine
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.types.engine_request import EngineRequest
from ouzel.vectors import EncodedText, activate_logits, finish_vectors
from tests.release_only import release_only

GOLDEN = Path(__file__).parent / "golden_sentences"
EMBEDDERS = sorted(path.parent.name for path in GOLDEN.glob("*/modules.json"))
CROSS_ENCODERS = sorted(path.name for path in GOLDEN.glob("cross-*"))


FURTHER = "vectors of further families, in company and rounded"


@dataclass(frozen=True)
class Golden:
    directory: Path
    texts: list[str]
    query: str
    arrays: dict[str, NDArray[np.float32]]


@cache
def read_golden(name: str) -> Golden:
    directory = GOLDEN / name
    content = json.loads((directory / "golden.json").read_text())
    with np.load(directory / "golden.npz") as arrays:
        return Golden(directory, content["texts"], content["query"], dict(arrays))


def load_engine(
    directory: Path,
    cache_dir: Path,
    *,
    weights: str = "f32",
    precision: str = "f32",
    **options: object,
) -> Engine:
    model = {"model": str(directory), "weights": weights, "cache_dir": str(cache_dir), **options}
    engine = {"precision": precision, "num_threads": 1, "kv_cache_gib": 0.01}
    if precision == "f32":
        engine["kv_cache_dtype"] = "f32"
    return openvino_engine({"model": model, "engine": engine})


def compute_vectors(engine: Engine, texts: Sequence[EncodedText]) -> NDArray[np.float32]:
    """Computes vectors; each request has as many texts as the engine accepts."""
    size = engine.info.max_texts
    vectors: dict[int, NDArray[np.float32]] = {}
    for begin in range(0, len(texts), size):
        part = texts[begin : begin + size]
        is_alone = size == 1
        lens = tuple(len(each.token_ids) for each in part)
        seconds = tuple(each.second_begin for each in part)
        tasks = tuple(each.task for each in part)
        pooling = (
            Pooling() if is_alone else Pooling(text_lens=lens, second_begins=seconds, tasks=tasks)
        )
        token_ids = [token_id for each in part for token_id in each.token_ids]
        params = SamplingParams(max_tokens=0)
        engine.add(
            EngineRequest(
                request_id=str(begin),
                prompt_token_ids=token_ids,
                params=params,
                n=len(part),
                pooling=pooling,
            )
        )
    while engine.has_unfinished():
        for output in engine.step():
            assert output.vector is not None, output.error
            vectors[int(output.request_id) + output.index] = np.frombuffer(output.vector, "<f4")
    return np.stack([vectors[place] for place in range(len(texts))])


def encoded(directory: Path, texts: Sequence[str], query: str | None = None) -> list[EncodedText]:
    tokenizer = load_tokenizer(directory)
    first = (lambda text: (text, None)) if query is None else (lambda text: (query, text))
    return [EncodedText(*tokenizer.encode_pair(*first(text), max_tokens=None)) for text in texts]


@pytest.fixture(scope="module")
def load_exact(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Engine]:
    """Loads each golden checkpoint once, in float32."""
    cache_dir = tmp_path_factory.mktemp("cache")
    return cache(lambda name: load_engine(GOLDEN / name, cache_dir))


@pytest.mark.parametrize("name", EMBEDDERS)
def test_vectors_equal_sentence_transformers(
    name: str, load_exact: Callable[[str], Engine]
) -> None:
    golden, engine = read_golden(name), load_exact(name)
    files = read_sentence_files(
        golden.directory, "decoder" if engine.info.num_blocks else "encoder"
    )
    prompts = {"vectors": files.default_prompt} | {
        f"vectors.{name}": files.named_prompt(name) for name in files.prompts
    }
    assert engine.info.task == "embed"
    for key in golden.arrays:
        prompt = prompts[key]
        texts = encoded(golden.directory, [prompt.text + text for text in golden.texts])
        texts = [replace(text, task=prompt.task) for text in texts]
        vectors = finish_vectors(compute_vectors(engine, texts), files, dimensions=None)
        assert vectors.shape == (len(texts), engine.info.vector_size)
        largest = max(1, np.abs(golden.arrays[key]).max())
        assert np.abs(vectors - golden.arrays[key]).max() < 1e-5 * largest


def test_the_pooling_of_the_option_replaces_the_pooling_of_the_files(tmp_path: Path) -> None:
    # The files name max, mean_sqrt_len_tokens, weightedmean and lasttoken, side by side.
    golden = read_golden("bert-poolings")
    texts = encoded(golden.directory, golden.texts)
    lens = np.array([len(text.token_ids) for text in texts])
    means = golden.arrays["vectors"][:, 32:64] / np.sqrt(lens)[:, None]
    for pooling, expected in (("lasttoken", golden.arrays["vectors"][:, 96:]), ("mean", means)):
        engine = load_engine(golden.directory, tmp_path, pooling=pooling)
        assert engine.info.vector_size == 32
        assert (
            np.abs(compute_vectors(engine, texts) - expected).max() < 1e-5 * np.abs(expected).max()
        )


def test_the_option_sets_the_pooling_if_no_file_names_one(tmp_path: Path) -> None:
    golden = read_golden("bge")
    directory = shutil.copytree(
        golden.directory, tmp_path / "bge", ignore=lambda *_: ["modules.json"]
    )
    engine = load_engine(directory, tmp_path / "cache", pooling="cls")
    files = read_sentence_files(directory, "encoder", pooling="cls")
    texts = encoded(directory, [files.default_prompt.text + text for text in golden.texts])
    vectors = compute_vectors(engine, texts)
    finished = finish_vectors(vectors, files, dimensions=None, normalises=True)
    assert files.modes == ("cls",)
    assert np.abs(finished - golden.arrays["vectors"]).max() < 1e-5


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_decoder_pools_its_last_token_only(pooling: str, tmp_path: Path) -> None:
    message = f"--pooling: must be auto or lasttoken for a qwen3, given {pooling}"
    with pytest.raises(ModelLoadError, match=message):
        load_engine(GOLDEN / "qwen3-embedding", tmp_path, pooling=pooling)


@pytest.mark.parametrize("name", CROSS_ENCODERS)
def test_scores_equal_sentence_transformers(name: str, load_exact: Callable[[str], Engine]) -> None:
    golden, engine = read_golden(name), load_exact(name)
    files = read_sentence_files(golden.directory, "encoder")
    texts = encoded(golden.directory, golden.texts, golden.query)
    scores = activate_logits(compute_vectors(engine, texts), files, activates=True)
    assert engine.info.task == "score"
    assert np.abs(scores - golden.arrays["scores"].reshape(len(texts), -1)).max() < 1e-5


@pytest.mark.parametrize(
    "name",
    [
        "modernbert",
        *release_only(FURTHER, "minilm", "xlm-roberta", "deberta", "mpnet"),
        *release_only(FURTHER, "embedding-gemma", "albert"),
    ],
)
def test_other_texts_in_a_request_do_not_change_a_vector(
    name: str, load_exact: Callable[[str], Engine]
) -> None:
    golden, engine = read_golden(name), load_exact(name)
    texts = encoded(golden.directory, golden.texts * 20)
    together = compute_vectors(engine, texts)
    alone = np.concatenate([compute_vectors(engine, [text]) for text in texts[: len(golden.texts)]])
    assert np.abs(together - np.tile(alone, (20, 1))).max() < 1e-5 * np.abs(alone).max()


@pytest.mark.parametrize(("weights", "precision"), [("bf16", "bf16"), ("int8", "int8")])
@pytest.mark.parametrize(
    "name",
    [
        "minilm",
        *release_only(FURTHER, "qwen3-embedding", "new", "deberta", "mpnet", "distilbert"),
        *release_only(FURTHER, "embedding-gemma", "camembert", "electra", "albert"),
    ],
)
def test_rounding_changes_vectors_little(
    name: str, weights: str, precision: str, tmp_path: Path
) -> None:
    if precision == "bf16" and "BF16" not in capabilities(ov.Core(), "CPU"):
        pytest.skip("this CPU has no bf16")
    golden = read_golden(name)
    engine = load_engine(golden.directory, tmp_path, weights=weights, precision=precision)
    files = read_sentence_files(golden.directory, "encoder")
    texts = encoded(golden.directory, golden.texts)
    vectors = finish_vectors(
        compute_vectors(engine, texts), files, dimensions=None, normalises=True
    )
    assert (vectors * golden.arrays["vectors"]).sum(axis=1).min() > 0.99


def test_a_second_start_reads_the_cached_weights(tmp_path: Path) -> None:
    golden = read_golden("nomic")
    texts = encoded(golden.directory, golden.texts)
    first, second = (
        compute_vectors(load_engine(golden.directory, tmp_path, weights="int8"), texts)
        for _ in range(2)
    )
    [entry] = tmp_path.glob("nomic-int8-*")
    assert (entry / "index.json").is_file()
    np.testing.assert_array_equal(first, second)


def test_a_model_that_generates_can_make_embeddings(tmp_path: Path) -> None:
    golden = read_golden("qwen3-reranker")
    engine = load_engine(golden.directory, tmp_path, task="embed")
    assert (engine.info.task, engine.info.vector_size) == ("embed", 32)
    assert compute_vectors(engine, encoded(golden.directory, ["snow"])).shape == (1, 32)


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("minilm", "generate", "task generate: a bert is an encoder and generates no tokens"),
        ("minilm", "score", "task score: BertModel has no head that scores"),
        ("cross-bert", "embed", "tensor classifier.bias is in the checkpoint"),
    ],
)
def test_an_impossible_task_is_refused(name: str, task: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=message):
        load_engine(GOLDEN / name, tmp_path, task=task)


def test_an_encoder_refuses_adapters(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="max_loras: a bert is an encoder and takes no adap"):
        load_engine(GOLDEN / "minilm", tmp_path, max_loras=2)
