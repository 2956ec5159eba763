"""Reads adapter directories in PEFT's format, and refuses broken or unsupported ones by name."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any  # JSON

import numpy as np
import pytest

from ouzel.backends.openvino.adapters.adapter_files import AdapterFiles
from ouzel.backends.openvino.adapters.adapter_options import (
    max_rank,
    num_adapters,
    subtract_adapter_bytes,
)
from ouzel.backends.openvino.graph.adapter_shape import (
    HEAD,
    AdaptedGroup,
    AdapterLimits,
    AdapterShape,
)
from ouzel.backends.openvino.library import ov
from ouzel.checkpoint.weight_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ouzel.config import ModelConfig
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.adapters import (
    ADAPTER_PARTS,
    RandomAdapter,
    list_adapted_matrices,
    random_adapter,
    read_shape,
)
from tests.backends.quantize import Tensors, load, save

MODEL = GOLDEN / "llama"
MATRICES = {matrix.name: matrix for matrix in list_adapted_matrices(MODEL)}
Q = "model.layers.0.self_attn.q_proj"
RANK = 3
GOLDEN_ADAPTERS = Path(__file__).parent / "golden_adapters"
SHAPE = read_shape(MODEL, AdapterLimits(4))


@pytest.fixture(scope="module")
def adapter() -> RandomAdapter:
    return random_adapter(MODEL, seed=1, rank=RANK)


def files(directory: Path) -> AdapterFiles:
    return AdapterFiles(directory, SHAPE)


@pytest.mark.parametrize(
    ("config", "of_q", "of_k"),
    [
        ({}, 2.0, 2.0),
        ({"lora_alpha": 1}, 1 / RANK, 1 / RANK),
        ({"lora_alpha": 6, "use_rslora": True}, 6 / math.sqrt(RANK), 6 / math.sqrt(RANK)),
        ({"alpha_pattern": {"q_proj": 9}}, 3.0, 2.0),
        (
            {
                "alpha_pattern": {
                    r"layers\.[1-9]\..*": 30,
                    r"layers\.0\.self_attn\.(q|v)_proj": 9,
                    "q_proj": 12,
                }
            },
            3.0,
            2.0,
        ),
        ({"alpha_pattern": {"^model.layers.0.self_attn.q_proj": 9, "proj": 30}}, 3.0, 2.0),
        ({"r": 64, "rank_pattern": {r".*_proj": RANK}}, 2.0, 2.0),
    ],
)
def test_the_scale_agrees_with_peft(
    adapter: RandomAdapter, tmp_path: Path, config: dict[str, Any], of_q: float, of_k: float
) -> None:
    RandomAdapter(adapter.halves, config).write(tmp_path / "adapter")
    read = files(tmp_path / "adapter")
    for name, scale in ((Q, of_q), (Q.replace("q_proj", "k_proj"), of_k)):
        change = read.read(name)
        np.testing.assert_array_equal(change.a, adapter.halves[name][0])
        np.testing.assert_allclose(change.b, np.float32(scale) * adapter.halves[name][1], rtol=1e-6)


@pytest.mark.parametrize(
    "rename",
    [
        lambda name: name.replace(
            "base_model.model.model.", "base_model.model.model.language_model."
        ),
        lambda name: name.replace(".weight", ".default.weight"),
    ],
)
def test_names_of_other_classes_and_versions_are_read(
    adapter: RandomAdapter, tmp_path: Path, rename: Callable[[str], str]
) -> None:
    path = adapter.write(tmp_path / "adapter") / ADAPTER_WEIGHTS
    save(path, {rename(name): tensor for name, tensor in load(path).items()})
    assert set(files(path.parent).names) == set(MATRICES)


def test_adapters_in_f16_are_read(adapter: RandomAdapter, tmp_path: Path) -> None:
    path = adapter.write(tmp_path / "adapter") / ADAPTER_WEIGHTS
    save(path, {name: ("F16", values) for name, (_, values) in load(path).items()})
    np.testing.assert_array_equal(
        files(path.parent).read(Q).a, adapter.halves[Q][0].astype(np.float16)
    )


def says(**entries: object) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / ADAPTER_CONFIG
        path.write_text(json.dumps(json.loads(path.read_text()) | entries))

    return change


def has(change: Callable[[Tensors], object]) -> Callable[[Path], None]:
    def rewrite(directory: Path) -> None:
        tensors = load(directory / ADAPTER_WEIGHTS)
        change(tensors)
        save(directory / ADAPTER_WEIGHTS, tensors)

    return rewrite


A_OF_Q, B_OF_Q = (f"base_model.model.{Q}.lora_{half}.weight" for half in "AB")


def put(
    name: str, *shape: int, dtype: str = "F32", value: float = 0.0
) -> Callable[[Tensors], object]:
    return lambda tensors: tensors.update({name: (dtype, np.full(shape, value, np.float32))})


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing there": (shutil.rmtree, "has no adapter_config.json"),
    "no configuration": (lambda d: (d / ADAPTER_CONFIG).unlink(), "has no adapter_config.json"),
    "no weights": (lambda d: (d / ADAPTER_WEIGHTS).unlink(), "has no adapter_model.safetensors"),
    "a pickle": (
        lambda d: (d / ADAPTER_WEIGHTS).rename(d / "adapter_model.bin"),
        "a pickle, is not read",
    ),
    "no JSON": (lambda d: (d / ADAPTER_CONFIG).write_text("{"), "is not valid JSON"),
    "a list": (lambda d: (d / ADAPTER_CONFIG).write_text("[]"), "must hold a JSON object"),
    "rank of 0": (says(r=0), "`$.r`"),
    "a rank of billions": (says(r=2**40), "`$.r`"),
    "a token of 40 bits": (says(trainable_token_indices=[2**40]), "trainable_token_indices"),
    "alpha of a text": (says(lora_alpha="8"), "`$.lora_alpha`"),
    "alpha beyond float32": (says(lora_alpha=1e300), "lora_alpha must be finite and at most 2^127"),
    "alpha of no number": (says(lora_alpha=math.nan), "lora_alpha must be finite"),
    "alpha of a pattern": (
        says(alpha_pattern={"q_proj": -1e300}),
        "alpha_pattern: q_proj must be finite and at most 2^127, given -1e+300",
    ),
    "another kind": (says(peft_type="LOHA"), "peft_type must be LORA"),
    "other biases": (says(bias="some"), "bias must be one of none, all, lora_only, given"),
    "DoRA without lengths": (says(use_dora=True), "use_dora does not agree with"),
    "no biases of B": (says(lora_bias=True), "lora_bias does not agree with"),
    "no whole modules": (says(modules_to_save=["norm"]), "modules_to_save does not agree with"),
    "experts": (says(target_parameters=["mlp.experts.gate_up_proj"]), "target_parameters"),
    "no tokens": (
        says(trainable_token_indices=[1]),
        "trainable_token_indices does not agree with adapter_model.safetensors, which has no",
    ),
    "tokens below 0": (says(trainable_token_indices=[-1]), "trainable_token_indices"),
    "replicated layers": (says(layer_replication=[[0, 2]]), "layer_replication"),
    "KaSA": (says(kasa_config={"beta": 1e-4}), "kasa_config"),
    "aLoRA": (says(alora_invocation_tokens=[1]), "alora_invocation_tokens"),
    "PiSSA": (says(init_lora_weights="pissa_niter_16"), "init_lora_weights"),
    "a bad pattern": (says(alpha_pattern={"(": 1}), "is not a regular expression"),
    "another rank than it says": (
        says(r=4),
        "the rank of model.layers.0.self_attn.q_proj is 4, but its tensors have rank 3",
    ),
    "no tensors": (has(dict.clear), "has no tensors"),
    "half a pair": (has(lambda tensors: tensors.pop(B_OF_Q)), "q_proj lacks lora_B"),
    "another width": (
        has(put(A_OF_Q, RANK, 7)),
        "has the shape [3, 7], the model needs [3, 64]",
    ),
    "another height": (has(put(B_OF_Q, 7, RANK)), "has the shape [7, 3]"),
    "a number": (has(put(A_OF_Q)), "has the shape []"),
    "no rank": (
        has(lambda tensors: (put(A_OF_Q, 0, 64)(tensors), put(B_OF_Q, 64, 0)(tensors))),
        "has rank 0",
    ),
    "integers": (has(put(A_OF_Q, RANK, 64, dtype="I32")), "is stored as I32"),
    "no numbers": (
        has(put(A_OF_Q, RANK, 64, value=math.nan)),
        "lora_A of model.layers.0.self_attn.q_proj has values that are not finite",
    ),
    "numbers that bf16 cannot hold": (
        has(put(A_OF_Q, RANK, 64, value=3.4e38)),
        "or too large for bf16",
    ),
    "the head": (
        has(put("base_model.model.lm_head.lora_A.weight", RANK, 64)),
        "started without: start it with --lora-parts head, or with --lora and this adapter",
    ),
    "the whole head": (
        has(put("base_model.model.lm_head.weight", 320, 64)),
        "lm_head.weight replaces weights whole (modules_to_save)",
    ),
    "the whole labels": (
        has(put("base_model.model.score.weight", 2, 64)),
        "score.weight replaces weights whole (modules_to_save)",
    ),
    "a whole matrix": (
        has(put(f"base_model.model.{Q}.weight", 64, 64)),
        "q_proj.weight replaces weights whole (modules_to_save)",
    ),
    "no module": (has(put("base_model.model..base_layer.weight", 64, 64)), "names no module"),
    "a layer too many": (
        has(put(A_OF_Q.replace(".0.", ".77."), RANK, 64)),
        "layers.77.self_attn.q_proj cannot be",
    ),
    "an embedding": (
        has(put("base_model.model.model.embed_tokens.lora_embedding_A", RANK, 9)),
        "start it with --lora-parts embedding, or",
    ),
    "magnitudes": (
        has(put(f"base_model.model.{Q}.lora_magnitude_vector", 64)),
        "start it with --lora-parts dora, or",
    ),
    "a bias": (
        has(put(f"base_model.model.{Q}.base_layer.bias", 64)),
        "start it with --lora-parts bias, or",
    ),
    "another part": (
        has(put(f"base_model.model.{Q}.lora_E.weight", 64)),
        "does not belong to a LoRA adapter of a supported kind",
    ),
    "the same twice": (
        has(put(A_OF_Q.replace(".weight", ".default.weight"), RANK, 64)),
        "has two tensors for",
    ),
    "a part only": (
        lambda d: (d / ADAPTER_WEIGHTS).write_bytes((d / ADAPTER_WEIGHTS).read_bytes()[:-5]),
        "is truncated",
    ),
    "no safetensors": (
        lambda d: (d / ADAPTER_WEIGHTS).write_bytes(b"PK" * 99),
        "adapter_model.safetensors",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_or_unsupported_adapters_are_refused_by_name(
    adapter: RandomAdapter, tmp_path: Path, case: str
) -> None:
    directory = adapter.write(tmp_path / "adapter")
    change, message = BROKEN[case]
    change(directory)
    with pytest.raises(ModelLoadError) as refusal:
        [files(directory).read(name) for name in files(directory).names]
    assert message in str(refusal.value)
    assert str(directory) in str(refusal.value) or "pattern" in str(refusal.value)


TOKENS = "token_adapter.trainable_tokens_delta"
HEAD_TOKENS, EMBEDDING_TOKENS = (
    f"base_model.model.{module}.{TOKENS}" for module in ("lm_head", "model.embed_tokens")
)
# name of the golden adapter -> change, message
BROKEN_PARTS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "tokens of a tied head": (
        "tokens",
        has(put(HEAD_TOKENS, 3, 64)),
        "the head is the embedding: train its tokens in model.embed_tokens only",
    ),
    "tokens of a tied head that differ": (
        "tokens",
        says(trainable_token_indices={"embed_tokens": [7, 3, 41], "lm_head": [7, 3]}),
        'trainable_token_indices names "lm_head", but',
    ),
    "no tokens of the head": (
        "tokens-untied",
        has(lambda tensors: tensors.pop(HEAD_TOKENS)),
        'trainable_token_indices names "lm_head", but adapter_model.safetensors has no',
    ),
    "LoRA beside tokens": (
        "tokens-untied",
        has(
            lambda tensors: (
                put("base_model.model.lm_head.lora_A.weight", 2, 64)(tensors),
                put("base_model.model.lm_head.lora_B.weight", 320, 2)(tensors),
            )
        ),
        "lm_head has both LoRA and trained tokens",
    ),
    "DoRA without one length": (
        "dora",
        has(lambda tensors: tensors.pop(next(name for name in tensors if "magnitude" in name))),
        "lacks lora_magnitude_vector, which use_dora needs",
    ),
    "one bias of B too few": (
        "lora-bias",
        has(lambda tensors: tensors.pop(next(name for name in tensors if "lora_B.bias" in name))),
        "lacks lora_B.bias, which lora_bias needs",
    ),
    "a bias of a head without one": (
        "tokens-untied",
        has(put("base_model.model.lm_head.bias", 320)),
        "lm_head has a bias, which this model lacks there",
    ),
}


@pytest.mark.parametrize("case", BROKEN_PARTS)
def test_parts_that_do_not_agree_with_the_configuration_are_refused(
    tmp_path: Path, case: str
) -> None:
    name, change, message = BROKEN_PARTS[case]
    directory = tmp_path / "adapter"
    shape = read_golden_parts(name, directory)
    assert AdapterFiles(directory, shape).names
    change(directory)
    with pytest.raises(ModelLoadError) as refusal:
        AdapterFiles(directory, shape)
    assert message in str(refusal.value)


def read_golden_parts(name: str, copy: Path) -> AdapterShape:
    """Copies an adapter that PEFT wrote, and returns the shape of its model with every part."""
    shutil.copytree(GOLDEN_ADAPTERS / name, copy)
    with np.load(copy / "golden.npz") as arrays:
        checkpoint = GOLDEN / str(arrays["checkpoint"])
    return read_shape(checkpoint, AdapterLimits(4, frozenset(ADAPTER_PARTS)))


def test_tokens_of_a_tied_head_may_be_named_beside_the_same_of_the_embedding(
    tmp_path: Path,
) -> None:
    """PEFT writes such a configuration with one tensor for both."""
    shape = read_golden_parts("tokens", tmp_path / "adapter")
    names = AdapterFiles(tmp_path / "adapter", shape).names
    tokens = [7, 3, 41]
    says(trainable_token_indices={"embed_tokens": tokens, "lm_head": tokens})(tmp_path / "adapter")
    assert AdapterFiles(tmp_path / "adapter", shape).names == names
    assert HEAD in names


def test_the_tokens_of_an_embedding_fit_into_the_memory_of_its_adapter(tmp_path: Path) -> None:
    directory = tmp_path / "adapter"
    shape = read_golden_parts("tokens-untied", directory)
    limit = 4 * (320 + 64) // 64

    def set_tokens(count: int) -> None:
        says(trainable_token_indices={"embed_tokens": list(range(count)), "lm_head": [5]})(
            directory
        )
        has(put(EMBEDDING_TOKENS, count, 64))(directory)

    set_tokens(limit)
    AdapterFiles(directory, shape)
    set_tokens(limit + 1)
    with pytest.raises(
        ModelLoadError, match=f"has {limit + 1} trained tokens; max_lora_rank, 4, .* for {limit}$"
    ):
        AdapterFiles(directory, shape)


def test_the_head_of_a_model_with_mtp_is_refused(adapter: RandomAdapter, tmp_path: Path) -> None:
    """The graph of such a model gives hidden rows, and its head is another graph."""
    path = adapter.write(tmp_path / "adapter") / ADAPTER_WEIGHTS
    name = "base_model.model.lm_head.lora_A.weight"
    save(path, load(path) | {name: ("F32", np.zeros((RANK, 64), np.float32))})
    shape = replace(SHAPE, limits=AdapterLimits(4, frozenset({"head"})))
    with pytest.raises(ModelLoadError, match="has no head"):
        AdapterFiles(path.parent, shape)


def test_a_rank_above_the_limit_is_refused(tmp_path: Path) -> None:
    directory = random_adapter(MODEL, seed=1, rank=5).write(tmp_path / "adapter")
    with pytest.raises(ModelLoadError, match="has rank 5, must be from 1 to max_lora_rank, 4"):
        files(directory)


def test_the_largest_rank_of_the_given_adapters_is_the_limit(tmp_path: Path) -> None:
    small = random_adapter(MODEL, seed=1, rank=2).write(tmp_path / "small")
    large = RandomAdapter({}, {"r": 8, "rank_pattern": {"q_proj": 48}})
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / ADAPTER_CONFIG).write_text(
        json.dumps({"peft_type": "LORA", **large.config})
    )
    assert (num_adapters(ModelConfig()), max_rank(ModelConfig())) == (0, 0)
    assert max_rank(ModelConfig(max_loras=4)) == 16
    assert max_rank(ModelConfig(lora=(f"a={small}",))) == 16
    assert max_rank(ModelConfig(lora=(f"a={small}", f"b={tmp_path / 'large'}"))) == 48
    assert max_rank(ModelConfig(lora=(f"a={small}",), max_lora_rank=2)) == 2
    assert num_adapters(ModelConfig(lora=(f"a={small}", f"b={small}"))) == 2
    with pytest.raises(ModelLoadError, match=r"has no adapter_config\.json"):
        max_rank(ModelConfig(lora=(f"a={tmp_path / 'missing'}",)))


def test_adapters_beyond_the_memory_are_refused() -> None:
    groups = tuple(AdaptedGroup((matrix,)) for matrix in MATRICES.values())
    shape = AdapterShape(groups, AdapterLimits(8), dtype=ov.Type.bf16)
    numbers = sum(8 * (matrix.num_columns + matrix.num_rows) for matrix in MATRICES.values())
    model = ModelConfig(max_loras=3)
    assert subtract_adapter_bytes(None, model, 7) == 7
    assert subtract_adapter_bytes(shape, model, 6 * numbers + 7) == 7
    with pytest.raises(ModelLoadError, match="max_loras, max_lora_rank: 3 adapters of rank 8 take"):
        subtract_adapter_bytes(shape, model, 6 * numbers - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lora": ("a",)}, "each entry must be NAME=PATH, found 'a'"),
        ({"lora": ("=a",)}, "each entry must be NAME=PATH, found '=a'"),
        ({"lora": ("a=x", "a=y")}, "the name 'a' must not appear twice"),
        (
            {"lora": ("a,b=x",)},
            "must be printable, without commas and without spaces at its ends, found 'a,b'",
        ),
        ({"lora": ("a\n=x",)}, "must be printable"),
        ({"lora": ("a" * 201 + "=x",)}, "must have <= 200 characters"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**options)
