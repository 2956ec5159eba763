"""Compares IR directories of models with vision encoders with transformers.

optimum-intel exported the golden checkpoints (training/golden/README.md).
"""

import json
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.vision import LAYERS_PER_PART
from ouzel.backends.openvino.ir.parts import cut
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.runners.vision_runner import VisionRunner, normalise_pixels
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ImageRunner
from ouzel.engine.core import EngineCore
from ouzel.errors import EngineFailed, ModelLoadError
from tests.backends import of_kinds
from tests.backends.conftest import Load
from tests.backends.forward import relative_error
from tests.backends.vision_golden import (
    LimitedRunner,
    VisionGolden,
    encode_image,
    read_vision_golden,
)
from tests.engine.requests import make_request, run, run_alone

IRS = Path(__file__).parent / "optimum_ir_vision"
NAMES = sorted(path.name for path in IRS.iterdir())
COUNTS = (1, 2, 4)


@dataclass(frozen=True)
class Exported:
    directory: Path
    golden: VisionGolden

    @property
    def is_exact(self) -> bool:
        return self.directory.name.endswith("-fp32")


@pytest.fixture(scope="module", params=NAMES)
def exported(request: pytest.FixtureRequest) -> Exported:
    return Exported(IRS / request.param, read_vision_golden(request.param.rpartition("-")[0]))


@pytest.fixture
def copy(exported: Exported, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported.directory, tmp_path / "ir"))


def read_refusal(directory: Path) -> str:
    """Returns the error of a load that must fail."""
    with pytest.raises(ModelLoadError) as refused:
        create_runner(ModelConfig(model=str(directory)), EngineConfig(kv_cache_gib=0.02))
    return str(refused.value)


def test_features_equal_transformers(exported: Exported, load: Load) -> None:
    runner = load(exported.directory)
    features = np.concatenate(
        [encode_image(runner, image) for image in exported.golden.images(4)], axis=1
    )

    expected = exported.golden.arrays["features.4"]
    assert features.shape == expected.shape
    assert relative_error(features, expected) < (1e-5 if exported.is_exact else 0.03)


@pytest.mark.parametrize("count", COUNTS)
def test_prompt_logprobs_and_greedy_tokens_equal_transformers(
    exported: Exported, load: Load, count: int
) -> None:
    golden = exported.golden
    engine = EngineCore(load(exported.directory))

    result = run_alone(engine, golden.request(count, num_prompt_logprobs=1))[0]

    rows = golden.arrays[f"logits.{count}"][:-1].astype(np.float64)
    token_ids = golden.prompt(count)[1:]
    expected = rows[np.arange(len(rows)), token_ids] - np.log(np.exp(rows).sum(axis=1))
    logprobs = np.array([position.sampled.logprob for position in result.prompt_logprobs])
    assert np.abs(logprobs - expected).max() < (1e-4 if exported.is_exact else 0.3)
    if exported.is_exact:
        assert result.token_ids == golden.greedy(count)


@pytest.mark.parametrize("chunk", [1, 7, 45])
def test_chunks_of_a_prompt_with_images_give_the_same_tokens(
    exported: Exported, load: Load, chunk: int
) -> None:
    runner = load(exported.directory)
    whole = run_alone(EngineCore(runner), exported.golden.request(2, max_tokens=8))[0]
    engine = EngineCore(LimitedRunner(runner, chunk), prefix_caching=False)

    chunked = run_alone(engine, exported.golden.request(2, max_tokens=8))[0]
    assert chunked.token_ids == whole.token_ids


def test_texts_and_images_in_one_batch_give_the_tokens_of_each_alone(
    exported: Exported, load: Load
) -> None:
    runner = load(exported.directory)
    text = make_request(exported.golden.prompt(1)[:9], max_tokens=24)
    requests = [text, *(exported.golden.request(count) for count in COUNTS)]
    again = [
        msgspec.structs.replace(each, request_id=f"{each.request_id}-alone") for each in requests
    ]

    together = run(EngineCore(runner), requests)

    for each, alone in zip(requests, again, strict=True):
        result = run_alone(EngineCore(runner, prefix_caching=False), alone)[0]
        assert together[each.request_id, 0].token_ids == result.token_ids


# Every run has a graph with three positions for each token. The three are equal in a text.
@pytest.mark.parametrize(
    "exported",
    of_kinds("vision graphs of OVMS: texts and precision", NAMES, ["qwen2_5_vl-fp32"]),
    indirect=True,
)
def test_a_text_has_the_logprobs_of_the_checkpoint_itself(exported: Exported, load: Load) -> None:
    prompt = [token_id for token_id in exported.golden.prompt(1) if token_id > 7]

    def logprobs(directory: Path) -> list[float]:
        request = make_request(prompt, max_tokens=1, num_prompt_logprobs=1)
        positions = run_alone(EngineCore(load(directory)), request)[0].prompt_logprobs
        return [position.sampled.logprob for position in positions]

    actual, expected = (logprobs(each) for each in (exported.directory, exported.golden.directory))
    assert actual == pytest.approx(expected, abs=1e-4 if exported.is_exact else 0.3)


@pytest.mark.parametrize(
    "exported",
    of_kinds("vision graphs of OVMS: texts and precision", NAMES, ["qwen2_vl-int8"]),
    indirect=True,
)
def test_features_in_the_serving_precision_are_near_transformers(
    exported: Exported, load: Load
) -> None:
    runner = load(exported.directory, "auto", "auto", "auto")
    features = np.concatenate(
        [encode_image(runner, image) for image in exported.golden.images(4)], axis=1
    )

    assert (runner.info.weights, runner.info.has_vision) == ("ir", True)
    assert relative_error(features, exported.golden.arrays["features.4"]) < 0.05


@pytest.mark.release("vision graphs of OVMS: steps and precision")
@pytest.mark.parametrize(
    ("name", "num_layers"), [("llava-fp32", 5), ("qwen2_vl-int8", 5), ("qwen2_5_vl-fp32", 3)]
)
def test_the_scheduler_may_interrupt_the_encoder_between_groups_of_layers(
    name: str, num_layers: int, load: Load
) -> None:
    golden = read_vision_golden(name.rpartition("-")[0])
    runner = load(IRS / name)
    assert isinstance(runner, ImageRunner)
    assert len(list(runner.encode(golden.images(1)[0]))) == -(-num_layers // LAYERS_PER_PART) - 1


def finish(parts: Generator[None, None, NDArray[np.float32]]) -> NDArray[np.float32]:
    try:
        while True:
            next(parts)
    except StopIteration as done:
        value: NDArray[np.float32] = done.value
        return value


def make_layers(num_layers: int, *, read_the_first: bool) -> ov.Model:
    """Makes a graph whose layers double their input; attention over a single row changes nothing.

    With `read_the_first`, each layer also adds the input of the first layer.
    """
    graph = PagedGraph()
    rows = graph.input("patches", [1, 1, 1, 8], ov.Type.f32)
    twice = ops.constant(2 * np.eye(8, dtype=np.float32))
    first = rows_now = ops.matmul(rows, twice, False, False)
    for _ in range(num_layers):
        seen = ops.scaled_dot_product_attention(rows_now, rows_now, rows_now, causal=False)
        rows_now = ops.add(
            ops.matmul(seen, twice, False, False),
            first if read_the_first else ops.constant(np.float32(0)),
        )
    return ov.Model([ops.result(rows_now)], [rows], "model")


def test_the_parts_of_a_graph_compute_the_same_as_the_graph() -> None:
    pixels = np.arange(8, dtype=np.float32).reshape(1, 1, 1, 8)
    image = msgspec.structs.replace(read_vision_golden("llava").images(1)[0], runs=((0, 1),))
    graph = make_layers(10, read_the_first=False)
    parts = cut(graph)
    model = VisionModel(parts=parts, arrays=[], passes=lambda image, _: [{"patches": pixels}])

    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = [ov.Core().compile_model(part, "CPU", exact) for part in parts]
    runner = VisionRunner(compiled, model, normalise_pixels)

    assert len(parts) == 10 // LAYERS_PER_PART
    features = finish(runner.encode(image))
    np.testing.assert_allclose(features.reshape(-1), pixels.reshape(-1) * 2**11)


def test_a_graph_whose_layers_all_read_the_first_is_not_cut() -> None:
    assert len(cut(make_layers(10, read_the_first=True))) == 1


@pytest.mark.release("vision graphs of OVMS: steps and precision")
def test_tiles_of_another_size_are_refused(load: Load) -> None:
    [image, *_] = read_vision_golden("llava").images(1)
    tiles, height, width = image.shape
    pixels = bytes(tiles * height * (width + 1) * 3)
    with pytest.raises(
        EngineFailed,
        match=r"tiles must have the image_size 23 of config.json, the image processor made 23x24",
    ):
        encode_image(
            load(IRS / "llava-fp32"),
            msgspec.structs.replace(image, shape=(tiles, height, width + 1), pixels=pixels),
        )


def test_an_error_names_an_unsupported_family(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text()) | {"model_type": "llava_next"}
    (copy / "config.json").write_text(json.dumps(config))
    message = read_refusal(copy)
    assert "openvino_language_model.xml cannot be served" in message
    assert "must be one of llava, qwen2_5_vl, qwen2_vl, found llava_next" in message


def test_an_error_names_an_unsupported_encoder(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(IRS / "llava-fp32", tmp_path / "ir"))
    config = json.loads((directory / "config.json").read_text())
    config["vision_config"]["model_type"] = "pixtral"
    (directory / "config.json").write_text(json.dumps(config))
    assert (
        'model_type "pixtral" is not supported; supported: clip_vision_model, siglip_vision_model'
        in read_refusal(directory)
    )


def test_an_error_names_a_missing_graph(copy: Path) -> None:
    (copy / "openvino_text_embeddings_model.xml").unlink()
    message = read_refusal(copy)
    assert "openvino_text_embeddings_model.xml" in message
    assert "--task image-text-to-text" in message


def test_an_error_names_missing_weights(copy: Path) -> None:
    (copy / "openvino_vision_embeddings_model.bin").unlink()
    assert (
        "openvino_vision_embeddings_model.bin, the weights of openvino_vision_embeddings_model.xml"
        in read_refusal(copy)
    )


@pytest.mark.parametrize("name", ["openvino_language_model", "openvino_text_embeddings_model"])
def test_an_error_about_another_kind_of_graph_names_the_export_command(
    copy: Path, name: str
) -> None:
    for ending in (".xml", ".bin"):
        shutil.copy(copy / f"openvino_vision_embeddings_model{ending}", copy / f"{name}{ending}")
    assert (
        "It must be as `optimum-cli export openvino --task image-text-to-text` makes it"
        in read_refusal(copy)
    )


def test_an_error_names_an_encoder_of_another_family(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(IRS / "qwen2_5_vl-fp32", tmp_path / "ir"))
    for ending in (".xml", ".bin"):
        shutil.copy(
            IRS / "qwen2_vl-int8" / f"openvino_vision_embeddings_merger_model{ending}",
            directory / f"openvino_vision_embeddings_merger_model{ending}",
        )
    message = read_refusal(directory)
    assert "openvino_vision_embeddings_merger_model.xml cannot be served" in message


def test_features_must_be_as_wide_as_the_rows_of_the_language_model(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(IRS / "llava-fp32", tmp_path / "ir"))
    core = ov.Core()
    graph = core.read_model(directory / "openvino_vision_embeddings_model.xml")
    features = graph.output(0).get_node().input(0)
    features.replace_source_output(ops.concat([features.get_source_output()] * 2, -1).output(0))
    graph.validate_nodes_and_infer_types()
    wider = tmp_path / "openvino_vision_embeddings_model.xml"
    ov.save_model(graph, wider, compress_to_fp16=False)
    del graph
    for ending in (".xml", ".bin"):
        shutil.copy(wider.with_suffix(ending), directory)
    assert "features have 128 numbers, the language model's rows 64" in read_refusal(directory)
