"""Estimates of models' memory and speed agree with the measured bytes of a real model."""

import pytest

from ouzel.doctor.fitting import COMMON_MODELS, Fit, estimates

GB = 10**9


def test_more_memory_never_makes_less_fit() -> None:
    for small, large in zip(
        estimates(4 * GB, 8 * GB, 30.0), estimates(16 * GB, 24 * GB, 30.0), strict=True
    ):
        order = [Fit.NO, Fit.IF_FREED, Fit.YES]
        assert order.index(small.fit) <= order.index(large.fit)


def test_fewer_bits_need_less_and_are_faster() -> None:
    found = estimates(64 * GB, 64 * GB, 30.0)
    for model in COMMON_MODELS:
        int4, int8, bf16 = [each for each in found if each.model is model]
        assert int4.needed_bytes < int8.needed_bytes < bf16.needed_bytes
        assert int4.tokens_per_s > int8.tokens_per_s > bf16.tokens_per_s


def test_the_estimated_weights_of_a_small_model_are_its_measured_bytes() -> None:
    """Qwen3-0.6B with a separate head takes 561 MB with int4 and 755 MB with int8.

    A token reads all bytes except the embedding's.
    """
    [int4, int8, _] = [
        each for each in estimates(8 * GB, 8 * GB, 30.0) if each.model.size == "0.6B"
    ]
    assert 30.0 / int4.tokens_per_s == pytest.approx(0.561 - 0.156, rel=0.05)
    assert 30.0 / int8.tokens_per_s == pytest.approx(0.755 - 0.156, rel=0.05)


def test_of_experts_only_some_are_read() -> None:
    by_size = {
        each.model.size: each for each in estimates(64 * GB, 64 * GB, 30.0) if each.width == "int4"
    }
    assert by_size["30B-A3B"].tokens_per_s > by_size["8B"].tokens_per_s
    assert by_size["30B-A3B"].needed_bytes > by_size["14B"].needed_bytes
