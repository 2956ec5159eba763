"""Compares the assistants of Gemma 4 with transformers' own assistants.

training/golden/make_assistant.py wrote them, for checkpoints of golden/.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.assistants.attachment import attach_assistant, measure_assistant
from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import read_weights
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.flat_batch import build_flat_batch
from ouzel.engine.speculation.proposals import Speculation
from ouzel.errors import ModelLoadError
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import read_gguf
from ouzel.serve.engine_factories import openvino_engine
from ouzel.serve.measuring import Question, measure
from tests.backends import quantize
from tests.backends.vision_golden import read_vision_golden
from tests.engine.drafting import FOR_NOTHING, FREE
from tests.engine.requests import make_request, run, run_alone

GOLDEN = Path(__file__).parent / "golden"
ASSISTANTS = Path(__file__).parent / "golden_assistant"
BLOCKS = list(range(4))
IN_F32 = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)
NAMES = ["gemma4-shared", "gemma4-unified"]
SEEING = read_vision_golden("gemma4")


def load(
    model: Path,
    assistant: Path,
    cache_dir: Path,
    *,
    weights: str = "f32",
    engine: EngineConfig = IN_F32,
) -> OpenVINORunner:
    config = ModelConfig(
        model=str(model), draft_model=str(assistant), cache_dir=str(cache_dir), weights=weights
    )
    runner = create_runner(config, engine)
    assert isinstance(runner, OpenVINORunner)
    return runner


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def runner(name: str, cache_dir: Path) -> OpenVINORunner:
    return load(GOLDEN / name, ASSISTANTS / name, cache_dir)


def read_golden(name: str) -> dict[str, NDArray[Any]]:  # Any: integers or floats
    with (
        np.load(GOLDEN / name / "golden.npz") as model,
        np.load(ASSISTANTS / name / "golden.npz") as assistant,
    ):
        return dict(model) | dict(assistant)


def run_prompt(runner: OpenVINORunner, prompt: list[int]) -> NDArray[np.float32]:
    batch = build_flat_batch([(BLOCKS, 0, prompt)], np.arange(len(prompt)), runner.info.block_size)
    return runner.run(batch)


def run_assistant(
    runner: OpenVINORunner,
    num_tokens: int,
    token_id: int,
    hidden: NDArray[np.float32],
    blocks: list[int] = BLOCKS,
) -> NDArray[np.float32]:
    """Runs the assistant after `num_tokens` computed tokens; returns its logits [1, tokens]."""
    assert runner.prediction is not None
    batch = build_flat_batch(
        [(blocks, num_tokens - 1, [token_id])], np.array([0]), runner.info.block_size
    )
    rows = replace(batch, positions=batch.positions + 1, hidden_rows=hidden)
    return runner.prediction.run(rows).copy()


def test_chained_logits_equal_transformers(name: str, runner: OpenVINORunner) -> None:
    golden = read_golden(name)
    prompt, token_id = golden["prompt"].tolist(), int(golden["greedy"][0])
    np.testing.assert_allclose(run_prompt(runner, prompt), golden["logits"], atol=2e-3)
    np.testing.assert_allclose(runner.hidden_rows, golden["hidden"], atol=2e-3)
    assert runner.prediction is not None
    hidden = runner.hidden_rows[-1:].copy()
    for place, draft in enumerate(golden["drafts"].tolist()):
        logits = run_assistant(runner, len(prompt), token_id, hidden)
        np.testing.assert_allclose(logits[0], golden["chained_logits"][place], atol=1e-4)
        hidden = runner.prediction.hidden_rows.copy()
        np.testing.assert_allclose(hidden[0], golden["chained_hidden"][place], atol=1e-4)
        token_id = int(logits[0].argmax())
        assert token_id == draft


def test_the_assistant_leaves_the_cache_as_it_is(name: str, runner: OpenVINORunner) -> None:
    prompt = read_golden(name)["prompt"].tolist()
    run_prompt(runner, prompt)
    before = read_cache(runner)
    run_assistant(runner, len(prompt), 5, runner.hidden_rows[-1:].copy())
    assert read_cache(runner) == before


def read_cache(runner: OpenVINORunner) -> list[bytes]:
    """Returns the keys and values of all blocks; places never written to may have NaN."""
    rows = runner.cache_rows["block"]
    record = np.empty(rows.row_bytes, np.uint8)
    blocks = []
    for block in range(runner.info.num_blocks):
        rows.read(block, record)
        blocks.append(record.tobytes())
    return blocks


def make_engine(runner: OpenVINORunner) -> EngineCore:
    speculation = Speculation(
        prompt_lookup=False, assists=True, costs=FREE, draft_costs=FOR_NOTHING
    )
    return EngineCore(runner, speculation=speculation)


def test_greedy_tokens_with_an_assistant_equal_transformers(
    name: str, runner: OpenVINORunner
) -> None:
    golden = read_golden(name)
    request = make_request(golden["prompt"].tolist(), max_tokens=64, ignore_eos=True)
    result = run_alone(make_engine(runner), request)[0]
    assert result.token_ids == golden["greedy"].tolist()
    assert result.final.num_proposed_tokens > 20


def test_several_requests_with_an_assistant_have_the_same_answers(
    name: str, runner: OpenVINORunner
) -> None:
    golden = read_golden(name)
    prompt, greedy = golden["prompt"].tolist(), golden["greedy"].tolist()
    prompts = [prompt, [*prompt, *greedy[:5]], [*prompt, *greedy[:11]]]
    requests = [make_request(each, max_tokens=30, ignore_eos=True) for each in prompts]
    results = run(make_engine(runner), requests)
    for request, begin in zip(requests, (0, 5, 11), strict=True):
        result = results[request.request_id, 0]
        assert result.token_ids == greedy[begin : begin + 30]
        assert result.final.num_proposed_tokens > 10


@pytest.mark.parametrize("cache", ["u8", "f16"])
def test_an_assistant_reads_a_narrow_cache(
    name: str, cache: Literal["u8", "f16"], cache_dir: Path
) -> None:
    """The kernels or the runtime compute the attention, of the model and of the assistant alike."""
    golden = read_golden(name)
    engine = EngineConfig(precision="int8", kv_cache_dtype=cache, kv_cache_gib=0.02)
    runner = load(GOLDEN / name, ASSISTANTS / name, cache_dir, weights="int8", engine=engine)
    prompt = golden["prompt"].tolist()
    run_prompt(runner, prompt)
    logits = run_assistant(
        runner, len(prompt), int(golden["greedy"][0]), runner.hidden_rows[-1:].copy()
    )[0]
    check_best_logits(logits, golden["chained_logits"][0])


def check_best_logits(logits: NDArray[np.float32], expected: NDArray[np.floating]) -> None:
    """Checks that the logits of the likeliest tokens go with the logits of transformers."""
    best = np.argsort(expected)[-16:]
    assert np.corrcoef(logits[best], expected[best])[0, 1] > 0.9


def test_the_assistant_does_not_change_the_logits_of_the_model(
    name: str, cache_dir: Path, runner: OpenVINORunner
) -> None:
    prompt = list(range(40))
    plain = create_runner(
        ModelConfig(model=str(GOLDEN / name), cache_dir=str(cache_dir), weights="f32"),
        IN_F32,
    )
    assert isinstance(plain, OpenVINORunner)
    expected = run_prompt(plain, prompt).copy()
    np.testing.assert_allclose(run_prompt(runner, prompt), expected, rtol=0, atol=1e-5)
    assert plain.info.num_blocks == runner.info.num_blocks, "an assistant takes no cache"


def test_the_model_may_be_a_gguf_file(tmp_path: Path, cache_dir: Path) -> None:
    """The model with experts has caches of the same form as `gemma4-unified`.

    The file has 8 bits for a weight.
    """
    path = GOLDEN.parents[1] / "gguf" / "golden" / "gemma4-experts.gguf"
    (tmp_path / "model.gguf").symlink_to(path)
    (tmp_path / "config.json").write_text(json.dumps(make_model_config(read_gguf([path]))))
    drafted = []
    for model in (GOLDEN / "gemma4-experts", tmp_path):
        runner = load(model, ASSISTANTS / "gemma4-unified", cache_dir)
        run_prompt(runner, list(range(40)))
        drafted.append(run_assistant(runner, 40, 5, runner.hidden_rows[-1:].copy()))
    assert np.corrcoef(drafted[0][0], drafted[1][0])[0, 1] > 0.99


@pytest.fixture(scope="module")
def seeing(cache_dir: Path) -> OpenVINORunner:
    """Layers with a window attend to whole images; the assistant reads their caches."""
    return load(SEEING.directory, ASSISTANTS / "gemma4", cache_dir)


def test_a_request_with_an_image_is_drafted_for(seeing: OpenVINORunner) -> None:
    assert seeing.info.attends_to_whole_images
    result = run_alone(make_engine(seeing), SEEING.request(1))[0]
    assert result.token_ids == SEEING.greedy(1)
    assert result.final.num_proposed_tokens > 10


def run_prompt_with_an_image(runner: OpenVINORunner) -> list[int]:
    """Runs a request of one token; returns the blocks of its prompt."""
    blocks: list[int] = []

    class Watched:
        """The runner, which notes the blocks of the prompt."""

        info, prediction, encode = runner.info, runner.prediction, runner.encode
        copy_blocks = runner.copy_blocks

        def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
            blocks[:] = batch.block_indices.tolist()
            return runner.run(batch)

        def close(self) -> None: ...

    run_alone(EngineCore(Watched()), SEEING.request(1, max_tokens=1))
    return blocks


def test_chained_logits_after_an_image_equal_transformers(seeing: OpenVINORunner) -> None:
    with np.load(ASSISTANTS / "gemma4" / "golden.npz") as arrays:
        expected, hidden = arrays["chained_logits"], arrays["hidden"][-1:]
    blocks = run_prompt_with_an_image(seeing)
    np.testing.assert_allclose(seeing.hidden_rows[-1:], hidden, atol=1e-4)
    token_id, num_tokens = SEEING.greedy(1)[0], len(SEEING.prompt(1))
    for logits in expected:
        found = run_assistant(seeing, num_tokens, token_id, hidden, blocks)
        np.testing.assert_allclose(found[0], logits, atol=1e-4)
        assert seeing.prediction is not None
        hidden, token_id = seeing.prediction.hidden_rows.copy(), int(found[0].argmax())


@pytest.mark.parametrize("cache", ["u8", "f16"])
def test_an_assistant_of_a_model_that_sees_reads_a_narrow_cache(
    cache: Literal["u8", "f16"], cache_dir: Path
) -> None:
    """The assistant and the model must have caches of the same form; loading checks that."""
    engine = EngineConfig(precision="int8", kv_cache_dtype=cache, kv_cache_gib=0.02)
    runner = load(SEEING.directory, ASSISTANTS / "gemma4", cache_dir, weights="int8", engine=engine)
    result = run_alone(make_engine(runner), SEEING.request(1))[0]
    assert result.final.num_proposed_tokens > 10
    blocks = run_prompt_with_an_image(runner)
    logits = run_assistant(
        runner, len(SEEING.prompt(1)), SEEING.greedy(1)[0], runner.hidden_rows[-1:].copy(), blocks
    )[0]
    with np.load(ASSISTANTS / "gemma4" / "golden.npz") as arrays:
        check_best_logits(logits, arrays["chained_logits"][0])


def test_the_option_enables_drafts(cache_dir: Path) -> None:
    model = {
        "model": str(GOLDEN / "gemma4-shared"),
        "draft_model": str(ASSISTANTS / "gemma4-shared"),
        "cache_dir": str(cache_dir),
    }
    engine = openvino_engine(
        {"model": model, "engine": {"kv_cache_gib": 0.02, "prompt_lookup": False}}
    )
    assert engine.info.has_drafts
    engine.close()


def test_the_measured_size_includes_the_assistant() -> None:
    engine = EngineConfig(kv_cache_gib=0.02)
    plain, assisted = (
        measure(
            Question(ModelConfig(model=str(GOLDEN / "gemma4-shared"), draft_model=draft), engine)
        )
        for draft in ("", str(ASSISTANTS / "gemma4-shared"))
    )
    assert assisted.weight_bytes > plain.weight_bytes
    assert assisted.cache_bytes == plain.cache_bytes


def change(directory: Path, values: dict[str, object], *, text: bool = False) -> Path:
    """Writes a changed copy of an assistant to the directory."""
    shutil.copytree(ASSISTANTS / "gemma4-shared", directory)
    path = directory / "config.json"
    config = json.loads(path.read_text())
    (config["text_config"] if text else config).update(values)
    path.write_text(json.dumps(config))
    return directory


def test_an_assistant_alone_is_refused() -> None:
    model = ModelConfig(model=str(ASSISTANTS / "gemma4-shared"))
    message = "is an assistant, which drafts for a Gemma 4, and cannot be served alone: name it as"
    for refuse in (create_runner, inspect_model):
        with pytest.raises(ModelLoadError, match=message):
            refuse(model, EngineConfig(kv_cache_gib=0.02))


def test_an_assistant_of_another_model_is_refused(cache_dir: Path) -> None:
    assistant = ASSISTANTS / "gemma4-shared"
    with pytest.raises(ModelLoadError, match="draft_model: an assistant drafts for a Gemma 4 only"):
        load(GOLDEN / "qwen3", assistant, cache_dir)
    with pytest.raises(
        ModelLoadError,
        match=r"sliding_attention must have the model's 2 key-value heads of 16 channels, found 1",
    ):
        load(GOLDEN / "gemma4-unified", assistant, cache_dir)
    with pytest.raises(ModelLoadError, match="draft_model: an assistant needs the hidden rows"):
        ir = GOLDEN.parent / "optimum_ir" / "mistral-int8"
        load(ir, assistant, cache_dir, weights="auto")


def test_an_assistant_with_another_kind_of_layers_is_refused() -> None:
    plan, name = read_weights("f32"), "gemma4-shared"
    config = read_hf_config(GOLDEN / name)
    model, _ = measure_checkpoint(GOLDEN / name, config, plan, lends_parts=True)
    assert model.lent is not None
    full = {"full_attention": model.lent.caches["full_attention"]}
    assistant, _ = measure_assistant(ASSISTANTS / name, plan)
    with pytest.raises(
        ModelLoadError,
        match="draft_model: layers must be of the model's kinds full_attention, found sliding_att",
    ):
        attach_assistant(replace(model, lent=replace(model.lent, caches=full)), assistant)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden_size_per_layer_input": 8}, "hidden_size_per_layer_input 8 is not supported"),
        ({"enable_moe_block": True}, r"^draft_model: .*enable_moe_block true is not supported"),
        ({"hidden_size": 0}, r"^draft_model: config\.json: text_config: hidden_size must be a pos"),
        ({"layer_types": ["a", "b", "c"]}, r"^draft_model: config\.json: text_config: layer_types"),
        ({"use_double_wide_mlp": True}, "use_double_wide_mlp true is not supported"),
        ({"num_kv_shared_layers": 2}, "num_kv_shared_layers 2 is not supported; supported: 3, all"),
    ],
)
def test_a_decoder_with_keys_of_its_own_is_refused(
    values: dict[str, object], message: str, tmp_path: Path, cache_dir: Path
) -> None:
    copy = change(tmp_path / "changed", values, text=True)
    with pytest.raises(ModelLoadError, match=message):
        load(GOLDEN / "gemma4-shared", copy, cache_dir)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"num_centroids": 7},
            "draft_model: .*num_centroids 7 is not supported; supported: a divisor of",
        ),
        ({"centroid_intermediate_top_k": 17}, "17 is not supported; supported: at most num_cent"),
        ({"backbone_hidden_size": 33}, "pre_projection"),
        ({"text_config": None}, r"^draft_model: config\.json: text_config is missing"),
        (
            {"tie_word_embeddings": False},
            r"^draft_model: config\.json: tie_word_embeddings false is not supported",
        ),
    ],
)
def test_unsupported_values_are_refused(
    values: dict[str, object], message: str, tmp_path: Path, cache_dir: Path
) -> None:
    copy = change(tmp_path / "changed", values)
    with pytest.raises(ModelLoadError, match=message):
        load(GOLDEN / "gemma4-shared", copy, cache_dir)


def test_a_copy_of_the_embedding_as_head_is_left_out(tmp_path: Path, cache_dir: Path) -> None:
    copy = tmp_path / "copied"
    shutil.copytree(ASSISTANTS / "gemma4-shared", copy)
    tensors = quantize.load(copy / "model.safetensors")
    kind, embedding = tensors["model.embed_tokens.weight"]
    quantize.save(copy / "model.safetensors", tensors | {"lm_head.weight": (kind, embedding)})
    load(GOLDEN / "gemma4-shared", copy, cache_dir)
    other = (kind, np.roll(embedding, 1, axis=0))
    quantize.save(copy / "model.safetensors", tensors | {"lm_head.weight": other})
    with pytest.raises(ModelLoadError, match=r"ties embedding and head, but .* lm_head\.weight"):
        load(GOLDEN / "gemma4-shared", copy, cache_dir)


def test_a_broken_order_of_tokens_is_refused(tmp_path: Path, cache_dir: Path) -> None:
    copy = tmp_path / "broken"
    shutil.copytree(ASSISTANTS / "gemma4-shared", copy)
    tensors = quantize.load(copy / "model.safetensors")
    kind, order = tensors["masked_embedding.token_ordering"]
    broken = order.copy()
    broken[3] = 128
    quantize.save(
        copy / "model.safetensors", tensors | {"masked_embedding.token_ordering": (kind, broken)}
    )
    with pytest.raises(
        ModelLoadError, match="token_ordering must have tokens from 0 to 127, found 0 to 128"
    ):
        load(GOLDEN / "gemma4-shared", copy, cache_dir)
