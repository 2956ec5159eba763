"""GGUF files: the values of their blocks, and models that agree with the original checkpoint."""

import json
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.gguf import READERS, GgufCheckpoint
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.block_types import BLOCK_TYPES
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import read_gguf
from tests.backends import of_kinds
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error
from tests.gguf.writer import Raw, RawTensor, Value, make_gguf

GOLDEN = Path(__file__).parents[1] / "gguf" / "golden"
BLOCKS = GOLDEN / "blocks.gguf"
MODELS = sorted(path.stem for path in GOLDEN.glob("*.gguf") if path != BLOCKS)
FEW_MODELS = ["deepseek-v3", "gemma3", "gpt-oss", "llama3", "nemotron_h", "qwen3_5"]
COLUMNS = 256
NOT_IN_PACKAGE = {"Q1_0", "Q2_0"}  # the package gguf does not decode them
SCALE_POSITIONS = {
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "Q4_1": (0, 2),
    "Q5_1": (0, 2),
    "IQ1_M": (),
    "TQ1_0": (52,),
    "TQ2_0": (64,),
}
# Files that store the bf16 values of the checkpoint.
LOSSLESS = (
    "apertus",
    "bloom",
    "mpt",
    "chatglm",
    "chatglm-fused",
    "exaone",
    "falcon-mamba",
    "gemma2",
    "gemma3",
    "dots1",
    "glm4-moe-norms",
    "gemma3n",
    "cohere-norms",
    "gemma",
    "gpt-neox",
    "gpt2",
    "granite",
    "lfm2",
    "lfm2-moe",
    "hunyuan-v1-moe",
    "internlm2",
    "llama3",
    "mamba2",
    "minimax-m2",
    "ministral3",
    "nemotron-h-moe",
    "nemotron_h",
    "muse-glimmer",
    "olmo",
    "phi",
    "phi3",
    "phimoe",
    "qwen2",
    "qwen3_5",
)
# The checkpoints of files with another name. Their families have the tensors of another one, under
# names of their own.
CHECKPOINT_NAMES = {
    "chatglm": "glm-usual-heads",
    "chatglm-fused": "glm-usual-heads",
    "exaone": "llama3",
    "internlm2": "llama",
}
# Settings in llama.cpp's code. Golden checkpoints have other values than published models.
NOT_IN_A_FILE: dict[str, JsonObject] = {
    "falcon-mamba": {"mixer_rms_eps": 1e-3},
    "gpt-oss": {"swiglu_limit": 1.5},
    "phimoe": {
        "router_jitter_noise": 0.5,
        "rope_scaling": {
            "rope_type": "longrope",
            "short_factor": [1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 2.4, 3.0],
            "long_factor": [1.2, 2.0, 4.0, 7.0, 12.0, 20.0, 30.0, 40.0],
            "short_mscale": 1.2,
            "long_mscale": 1.5,
            "original_max_position_embeddings": 128,
        },
    },
    "lfm2-moe": {"routed_scaling_factor": 1.5},
    "ministral3": {"sliding_window": 24},
    "nemotron_h": {"time_step_min": 0.2},
    "nemotron-h-moe": {"time_step_min": 0.2},
    "gemma2": {"query_pre_attn_scalar": 16},
    "muse-glimmer": {"layer_rope_theta": [500_000.0, 0, 500_000.0, 0]},
    "gemma3": {
        "query_pre_attn_scalar": 200,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "final_logit_softcapping": 20.0,
    },
}
# The file stores the keys' half of kv_b_proj transposed, so Ouzel compresses it again (0.003).
RECOMPRESSED = {"deepseek-v3": 0.01}
# The error of the format, or of factors that were multiplied into bf16 values: 0.009 to 0.044
# measured. A wrong name or order gives 0.2 and more.
Q8_0_ERROR = 0.05


def expected_rows(block_type: str) -> NDArray[np.float32]:
    """Returns the values that llama.cpp's package decodes from the blocks."""
    with np.load(BLOCKS.with_suffix(".npz")) as arrays:
        rows: NDArray[np.float32] = arrays[block_type]
    return rows


@pytest.mark.parametrize("block_type", [name for name in READERS if name not in NOT_IN_PACKAGE])
def test_blocks_keep_their_values(block_type: str) -> None:
    checkpoint = GgufCheckpoint([BLOCKS])
    tensor = Tensor(block_type, (4, 512))
    encoding = checkpoint.stored_encoding(tensor)
    assert encoding is not None
    expected = expected_rows(block_type)
    rows = np.concatenate([decode(encoding, parts) for parts in checkpoint.parts(tensor)])
    if encoding.zeros is None:
        np.testing.assert_array_equal(rows, expected)
    else:  # Ouzel turns an offset into a zero point, which is rounded to float32
        np.testing.assert_allclose(rows, expected, atol=2e-7 * np.abs(expected).max())
    np.testing.assert_array_equal(np.concatenate(list(checkpoint.rows(tensor))), rows)


@pytest.mark.parametrize(("kind", "levels"), [("Q1_0", [-1, 1]), ("Q2_0", [-1, 0, 1, 2])])
def test_levels_of_one_and_two_bits_lie_side_by_side(
    kind: str, levels: list[int], tmp_path: Path
) -> None:
    """The levels are in the order of the bits of each byte (ggml-quants.c)."""
    number, num_values = next(
        (number, each.num_values) for number, each in BLOCK_TYPES.items() if each.name == kind
    )
    generator = np.random.default_rng(3)
    places = generator.integers(0, len(levels), (2, num_values))
    width = len(levels) // 2  # bits
    numbers = np.sum(places.reshape(2, -1, 8 // width) << np.arange(0, 8, width), axis=-1)
    scales = np.array([0.5, -0.25], "<f2")
    blocks = [
        np.concatenate([scales[i : i + 1].view("u1"), numbers[i].astype("u1")]) for i in (0, 1)
    ]
    metadata: dict[str, Value | Raw] = {"general.architecture": "llama"}
    tensor = RawTensor("output.weight", (2, num_values), number, np.concatenate(blocks).tobytes())
    (tmp_path / "model.gguf").write_bytes(make_gguf(metadata, [tensor]))
    rows = GgufCheckpoint([tmp_path / "model.gguf"]).rows(Tensor("lm_head.weight", (2, num_values)))
    expected = np.array(levels)[places] * scales[:, None].astype(np.float32)
    np.testing.assert_array_equal(np.concatenate(list(rows)), expected)


def model_directory(name: str, directory: Path) -> Path:
    """Writes a directory with a golden file and config.json. Golden files have no tokenizer."""
    path = GOLDEN / f"{name}.gguf"
    (directory / "model.gguf").symlink_to(path)
    config = make_model_config(read_gguf([path])) | NOT_IN_A_FILE.get(name, {})
    (directory / "config.json").write_text(json.dumps(config))
    return directory


@pytest.mark.parametrize("name", of_kinds("GGUF files of other architectures", MODELS, FEW_MODELS))
def test_a_gguf_model_agrees_with_its_checkpoint(name: str, load: Load, tmp_path: Path) -> None:
    golden = read_golden(CHECKPOINT_NAMES.get(name, name))
    directory = model_directory(name, tmp_path)
    exact = load(directory, "f32")
    _, logits = Driver(exact).prefill(golden.prompt, 1 << 30)
    assert relative_error(logits, golden.logits) < (1e-4 if name in LOSSLESS else Q8_0_ERROR)
    if name in LOSSLESS:
        assert Driver(exact).greedy(golden.prompt, len(golden.greedy)) == golden.greedy
    else:
        _, kept = Driver(load(directory, "auto")).prefill(golden.prompt, 1 << 30)
        assert relative_error(kept, logits) < RECOMPRESSED.get(name, 1e-5)


def test_heads_are_reordered_in_blocks(tmp_path: Path) -> None:
    """qwen35 stores the first value heads of all key heads, then the second.

    In this test a head is as wide as a block.
    """
    generator = np.random.default_rng(2)
    kind, num_bytes = next(
        (number, each.num_bytes) for number, each in BLOCK_TYPES.items() if each.name == "Q8_0"
    )
    blocks = generator.integers(0, 256, (128, 4, num_bytes), np.uint8)
    blocks[..., :2] = np.array([2e-2], "<f2").view(np.uint8)
    names = {"ssm_out": "out_proj", "attn_gate": "in_proj_z"}
    tensors = [
        RawTensor(f"blk.0.{name}.weight", (128, 128), kind, blocks.tobytes()) for name in names
    ]
    sizes = {"group_count": 2, "time_step_rank": 4, "state_size": 16, "inner_size": 128}
    metadata: dict[str, Value | Raw] = {"general.architecture": "qwen35"}
    metadata |= {f"qwen35.ssm.{key}": value for key, value in sizes.items()}
    (tmp_path / "model.gguf").write_bytes(make_gguf(metadata, tensors))
    checkpoint = GgufCheckpoint([tmp_path / "model.gguf"])
    stored = (blocks[..., 2:].view(np.int8) * np.float16(2e-2).astype(np.float32)).reshape(
        4, 32, 4, 32
    )
    grouped = [0, 2, 1, 3]
    for name, expected in {"out_proj": stored[:, :, grouped], "in_proj_z": stored[grouped]}.items():
        tensor = Tensor(f"model.layers.0.linear_attn.{name}.weight", (128, 128))
        encoding = checkpoint.stored_encoding(tensor)
        assert encoding is not None
        kept = np.concatenate([decode(encoding, parts) for parts in checkpoint.parts(tensor)])
        np.testing.assert_array_equal(kept, expected.reshape(128, 128))
        np.testing.assert_array_equal(np.concatenate(list(checkpoint.rows(tensor))), kept)


def test_two_matrices_in_one_tensor_are_separated_by_key_head(tmp_path: Path) -> None:
    """For each key head qwen3next stores the rows of beta, then the rows of the step."""
    sizes = {"group_count": 2, "time_step_rank": 4, "state_size": 16, "inner_size": 128}
    metadata: dict[str, Value | Raw] = {"general.architecture": "qwen3next"}
    metadata |= {f"qwen3next.ssm.{key}": value for key, value in sizes.items()}
    values = np.arange(8 * 4, dtype="<f4").reshape(8, 4)
    path = tmp_path / "model.gguf"
    path.write_bytes(
        make_gguf(metadata, [RawTensor("blk.0.ssm_ba.weight", (8, 4), 0, values.tobytes())])
    )
    checkpoint = GgufCheckpoint([path])
    for name, rows in {"in_proj_b": [0, 1, 4, 5], "in_proj_a": [2, 3, 6, 7]}.items():
        chunks = checkpoint.rows(Tensor(f"model.layers.0.linear_attn.{name}.weight", (4, 4)))
        np.testing.assert_array_equal(np.concatenate(list(chunks)), values[rows])
    path.write_bytes(
        make_gguf(metadata, [RawTensor("blk.0.ssm_ba.weight", (7, 4), 0, values[:7].tobytes())])
    )
    with pytest.raises(
        ModelLoadError, match=r"ssm_ba\.weight must have a multiple of 4 rows, found \[7, 4\]"
    ):
        GgufCheckpoint([path])


def test_a_narrower_width_rounds_the_layers_of_a_file_in_q8_0(load: Load, tmp_path: Path) -> None:
    directory = model_directory("qwen3", tmp_path)
    found = [load(directory, width).info.weights for width in ("auto", "int4")]
    assert found == ["gguf as i8", "gguf as i4, i8 (int4)"]


def test_safetensors_precede_a_gguf_file(tmp_path: Path) -> None:
    for name in ("model.safetensors", "other.gguf"):
        (tmp_path / name).touch()
    assert find_weights(tmp_path, HfConfig({})).files == [tmp_path / "model.safetensors"]


def test_the_error_names_a_tensor_that_is_missing_or_has_another_shape() -> None:
    checkpoint = GgufCheckpoint([GOLDEN / "qwen3.gguf"])
    with pytest.raises(
        ModelLoadError,
        match=r"has no tensor for model\.layers\.7\.mlp\.up_proj\.weight",
    ):
        checkpoint.stored_encoding(Tensor("model.layers.7.mlp.up_proj.weight", (128, 64)))
    with pytest.raises(
        ModelLoadError, match=r"tensor output_norm.weight has the shape \[64\], but .* \[65\]"
    ):
        checkpoint.stored_encoding(Tensor("model.norm.weight", (65,)))


MATRICES = (
    "token_embd",
    *(f"blk.0.{name}" for name in ("attn_q", "attn_k", "attn_v", "attn_output")),
)
MATRICES += tuple(f"blk.0.{name}" for name in ("ffn_gate", "ffn_up", "ffn_down"))


def quantised_model(directory: Path, types: list[str]) -> Path:
    """Writes a model of one layer with random blocks of these types and tied embeddings."""
    generator = np.random.default_rng(1)
    kinds = dict(zip(MATRICES, cycle(types), strict=False))
    tensors = [
        RawTensor(f"{name}.weight", (COLUMNS, COLUMNS), *random_blocks(kind, generator))
        for name, kind in kinds.items()
    ]
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        tensors.append(
            RawTensor(f"{name}.weight", (COLUMNS,), 0, np.ones(COLUMNS, "<f4").tobytes())
        )
    sizes = {
        "block_count": 1,
        "embedding_length": COLUMNS,
        "feed_forward_length": COLUMNS,
        "context_length": 64,
    }
    attention: dict[str, Value | Raw] = {
        "llama.attention.head_count": 4,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
    }
    metadata = (
        {"general.architecture": "llama"}
        | {f"llama.{key}": value for key, value in sizes.items()}
        | attention
    )
    (directory / "model.gguf").write_bytes(make_gguf(metadata, tensors))
    (directory / "config.json").write_text(
        json.dumps(make_model_config(read_gguf([directory / "model.gguf"])))
    )
    return directory


def random_blocks(kind: str, generator: np.random.Generator) -> tuple[int, bytes]:
    """Returns the number of the type, and random blocks of a square matrix with small scales."""
    [(number, block_type)] = [
        (number, each) for number, each in BLOCK_TYPES.items() if each.name == kind
    ]
    num_blocks = COLUMNS * COLUMNS // block_type.num_values
    blocks = generator.integers(0, 256, (num_blocks, block_type.num_bytes), np.uint8)
    for position in SCALE_POSITIONS.get(kind, (0,)):
        blocks[:, position : position + 2] = np.array([2e-4], "<f2").view(np.uint8)
    if kind == "IQ1_M":  # four bits of its scale in each of the last four u16
        [bits] = np.array([2e-4], "<f2").view("<u2")
        words = blocks[:, 48:].copy().view("<u2") & 0xFFF
        words |= (bits >> np.arange(0, 16, 4, dtype=np.uint16) & 15) << 12
        blocks[:, 48:] = words.view(np.uint8)
    return number, blocks.tobytes()


@pytest.mark.parametrize(
    ("types", "served", "tolerance"),
    [
        # Ouzel multiplies the levels of these blocks as they are stored
        (["Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS"], "gguf as i8, i4", 1e-5),
        (["IQ2_XXS", "IQ3_XXS", "IQ3_S", "IQ1_S", "TQ2_0", "TQ1_0"], "gguf as i8, i4", 1e-5),
        (["IQ2_XS", "IQ2_S", "IQ1_M"], "gguf as i8", 0.02),
        (["Q4_K", "Q5_K", "Q6_K", "Q3_K", "Q2_K", "Q4_1"], "gguf as i8", 0.02),  # 0.006 measured
    ],
)
def test_blocks_are_multiplied_by_integers(
    types: list[str], served: str, tolerance: float, load: Load, tmp_path: Path
) -> None:
    directory = quantised_model(tmp_path, types)
    prompt = list(range(7, 31))
    _, decoded_first = Driver(load(directory, "f32")).prefill(prompt, 1 << 30)
    runner = load(directory, "auto")
    _, logits = Driver(runner).prefill(prompt, 1 << 30)
    assert relative_error(logits, decoded_first) < tolerance
    assert runner.info.weights == served


def test_the_error_names_an_unsupported_block_type(tmp_path: Path) -> None:
    metadata: dict[str, Value | Raw] = {"general.architecture": "llama"}
    (tmp_path / "model.gguf").write_bytes(
        make_gguf(metadata, [RawTensor("output.weight", (1, 64), 40, bytes(36))])
    )
    checkpoint = GgufCheckpoint([tmp_path / "model.gguf"])
    with pytest.raises(
        ModelLoadError,
        match=r"tensor output.weight is stored as NVFP4; supported are F32, F16, BF16",
    ):
        checkpoint.stored_encoding(Tensor("lm_head.weight", (1, 64)))


@pytest.mark.parametrize("architecture", ["qwen3moe", "gpt-oss"])
def test_experts_without_matrices_are_refused(architecture: str, tmp_path: Path) -> None:
    metadata: dict[str, Value | Raw] = {"general.architecture": architecture}
    tensor = RawTensor("blk.0.ffn_gate_exps.weight", (64,), 0, bytes(256))
    (tmp_path / "model.gguf").write_bytes(make_gguf(metadata, [tensor]))
    with pytest.raises(
        ModelLoadError, match=r"ffn_gate_exps\.weight must have 3 dimensions, .* found \[64\]"
    ):
        GgufCheckpoint([tmp_path / "model.gguf"])


def test_experts_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata: dict[str, Value | Raw] = {"general.architecture": "qwen3moe"}
    tensors = [
        RawTensor(f"blk.{layer}.ffn_up_exps.weight", (8, 1, 4), 0, bytes(128)) for layer in range(2)
    ]
    (tmp_path / "model.gguf").write_bytes(make_gguf(metadata, tensors))
    monkeypatch.setattr("ouzel.gguf.tensors.MAX_TENSORS", 16)
    assert len(list(GgufCheckpoint([tmp_path / "model.gguf"]).names())) == 16
    monkeypatch.setattr("ouzel.gguf.tensors.MAX_TENSORS", 15)
    with pytest.raises(
        ModelLoadError, match="must have <= 15 matrices, including matrices of experts"
    ):
        GgufCheckpoint([tmp_path / "model.gguf"])
