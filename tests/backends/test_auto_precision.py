"""`--precision auto` selects a precision by the instructions of the CPU, with or without AMX."""

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.auto_precision import prefers_int8
from ouzel.backends.openvino.compilation import capabilities
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig
from ouzel.machine.instructions import processor_flags
from tests.backends import GOLDEN
from tests.release_only import release_only

SAPPHIRE_RAPIDS = {
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
}
ZEN_4 = {"avx2", "avx512f", "avx512_vnni", "avx512_bf16"}
LIMIT = "ONEDNN_MAX_CPU_ISA"
FURTHER = "precisions of further models"


def further(*values: str) -> ParameterSet:
    return pytest.param(*values, marks=pytest.mark.release(FURTHER))


@pytest.mark.parametrize(
    ("flags", "may_use_amx", "expected"),
    [
        (SAPPHIRE_RAPIDS, True, False),
        (SAPPHIRE_RAPIDS, False, True),
        (ZEN_4, True, True),
        ({"avx2", "avx_vnni"}, True, True),
        ({"avx2"}, True, False),
        ({"asimd", "bf16", "i8mm"}, True, False),  # ARM
        (set(), True, False),  # the system tells no flags
    ],
)
def test_int8_is_preferred_where_products_of_int8_are_quick_and_amx_is_missing(
    flags: set[str], *, may_use_amx: bool, expected: bool
) -> None:
    assert prefers_int8(flags, may_use_amx=may_use_amx) is expected


@pytest.mark.skipif("BF16" not in capabilities(ov.Core(), "CPU"), reason="this CPU has no bf16")
@pytest.mark.skipif("avx512_vnni" not in processor_flags(), reason="this CPU has no AVX-512 VNNI")
@pytest.mark.parametrize(
    ("name", "weights", "kv_cache_dtype", "expected"),
    [
        ("llama", "int4", "f16", "int8"),
        ("llama", "bf16", "auto", "bf16"),
        ("llama", "int8", "bf16", "bf16"),
        ("mixtral", "int8", "auto", "int8"),
        ("deepseek-v2", "int8", "auto", "bf16"),  # latent attention
        further("llama", "int8", "auto", "int8"),
        further("granitemoehybrid", "int8", "auto", "int8"),
    ],
)
def test_without_amx_integer_weights_are_multiplied_in_int8_and_others_in_bf16(
    *,
    name: str,
    weights: str,
    kv_cache_dtype: KvCacheDtype,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv(LIMIT, "AVX512_CORE_BF16")
    engine = EngineConfig(kv_cache_gib=0.01, max_num_seqs=4, kv_cache_dtype=kv_cache_dtype)
    model = ModelConfig(model=str(GOLDEN / name), weights=weights, cache_dir=str(tmp_path))
    assert create_runner(model, engine).info.precision == expected


@pytest.mark.skipif("BF16" not in capabilities(ov.Core(), "CPU"), reason="this CPU has no bf16")
@pytest.mark.skipif("avx512_vnni" not in processor_flags(), reason="this CPU has no AVX-512 VNNI")
@pytest.mark.parametrize("name", ["deepseek-v2", *release_only(FURTHER, "llama")])
def test_a_deterministic_engine_takes_int8_with_amx_too(name: str, tmp_path: Path) -> None:
    """This shows it on each CPU: a CPU without AMX computes latent attention in bf16 by default."""
    engine = EngineConfig(kv_cache_gib=0.01, max_num_seqs=4, deterministic=True)
    model = ModelConfig(model=str(GOLDEN / name), weights="int8", cache_dir=str(tmp_path))
    assert create_runner(model, engine).info.precision == "int8"
