"""Sampling fields become parameters: values of the request, of the model, or defaults."""

import pytest

from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.errors import ContextLengthExceeded, InvalidRequest
from ouzel.generation.sampling_values import fit_beams, fit_max_tokens, resolve_sampling
from ouzel.sampling import SamplingFields, SamplingParams
from tests.api.byte_tokens import byte_tokenizer
from tests.generation.generations import ROOM


def resolve(fields: SamplingFields, defaults: SamplingDefaults | None = None) -> SamplingParams:
    return resolve_sampling(
        fields,
        defaults or SamplingDefaults(),
        max_tokens=10,
        num_logprobs=None,
        vocab_size=260,
        tokenizer=byte_tokenizer(),
    )


def test_a_value_comes_from_the_request_then_the_model_then_us() -> None:
    defaults = SamplingDefaults(temperature=0.6, top_p=0.9, top_k=20, repetition_penalty=1.1)
    ours = resolve(SamplingFields())
    assert (ours.temperature, ours.top_p, ours.top_k, ours.repetition_penalty) == (
        1.0,
        1.0,
        40,
        1.0,
    )
    models = resolve(SamplingFields(), defaults)
    assert (models.temperature, models.top_p, models.top_k, models.repetition_penalty) == (
        0.6,
        0.9,
        20,
        1.1,
    )
    asked = resolve(
        SamplingFields(temperature=0.2, top_p=1.0, top_k=5, repetition_penalty=1.0), defaults
    )
    assert (asked.temperature, asked.top_p, asked.top_k, asked.repetition_penalty) == (
        0.2,
        1.0,
        5,
        1.0,
    )


@pytest.mark.parametrize(
    ("fields", "top_k"),
    [
        (SamplingFields(temperature=0), 0),
        (SamplingFields(top_k=-1), 0),
        (SamplingFields(top_k=0), 0),
        (SamplingFields(temperature=0, top_k=7), 7),
    ],
)
def test_top_k_has_a_default_only_while_sampling(fields: SamplingFields, top_k: int) -> None:
    assert resolve(fields).top_k == top_k


@pytest.mark.parametrize(
    ("fields", "defaults", "temperature"),
    [
        (SamplingFields(), SamplingDefaults(do_sample=False), 0.0),
        (SamplingFields(), SamplingDefaults(do_sample=False, temperature=0.6), 0.0),
        (SamplingFields(), SamplingDefaults(do_sample=True), 1.0),
        (SamplingFields(), SamplingDefaults(do_sample=True, temperature=0.6), 0.6),
        (SamplingFields(temperature=0.4), SamplingDefaults(do_sample=False, temperature=0.6), 0.4),
        (SamplingFields(top_p=0.5), SamplingDefaults(do_sample=False), 0.0),
        (SamplingFields(do_sample=False), SamplingDefaults(temperature=0.6), 0.0),
        (SamplingFields(do_sample=False, temperature=0), SamplingDefaults(), 0.0),
        (SamplingFields(do_sample=True), SamplingDefaults(), 1.0),
        (SamplingFields(do_sample=True), SamplingDefaults(do_sample=False, temperature=0.6), 0.6),
        (SamplingFields(do_sample=True), SamplingDefaults(temperature=0.0), 1.0),
        (SamplingFields(do_sample=True, temperature=0.2), SamplingDefaults(do_sample=False), 0.2),
    ],
)
def test_do_sample_decides_if_no_temperature_is_given(
    fields: SamplingFields, defaults: SamplingDefaults, temperature: float
) -> None:
    assert resolve(fields, defaults).temperature == temperature


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            SamplingFields(do_sample=False, temperature=0.7),
            "must be 0 when do_sample is false, given 0.7",
        ),
        (
            SamplingFields(do_sample=True, temperature=0),
            "must be > 0 when do_sample is true, given 0",
        ),
    ],
)
def test_a_temperature_that_contradicts_do_sample_is_refused(
    fields: SamplingFields, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        resolve(fields)


def test_a_window_of_penalties_counts_only_with_a_penalty() -> None:
    on = resolve(SamplingFields(repetition_penalty=1.1, repeat_last_n=64))
    assert (on.repetition_penalty, on.repeat_last_n) == (1.1, 64)
    assert resolve(SamplingFields(repeat_last_n=64)).repeat_last_n == -1
    makers = SamplingDefaults(repetition_penalty=1.1)
    off = resolve(SamplingFields(presence_penalty=1, repeat_last_n=0), makers)
    assert (off.adjusts_logits, off.repeat_last_n) == (False, -1)


def test_the_makers_typical_p_and_ngram_size_count() -> None:
    params = resolve(SamplingFields(), SamplingDefaults(typical_p=0.9, no_repeat_ngram_size=3))
    assert (params.typical_p, params.no_repeat_ngram_size) == (0.9, 3)
    params = resolve(
        SamplingFields(typical_p=1, no_repeat_ngram_size=0),
        SamplingDefaults(typical_p=0.9, no_repeat_ngram_size=3),
    )
    assert (params.typical_p, params.no_repeat_ngram_size) == (1, 0)


@pytest.mark.parametrize(
    ("words", "token_ids"),
    [
        (["ab"], (b"ab", b" ab")),
        ([" ab", "ab"], (b"ab", b" ab")),
        (["\n", " "], (b"\n", b" \n", b" ", b"  ")),
        (["é"], (b"\xc3\xa9", b" \xc3\xa9")),
    ],
)
def test_bad_words_are_banned_with_and_without_a_space(
    words: list[str], token_ids: tuple[bytes, ...]
) -> None:
    assert resolve(SamplingFields(bad_words=words)).bad_words == tuple(map(tuple, token_ids))


def test_a_seed_is_drawn_only_when_none_is_given() -> None:
    assert resolve(SamplingFields(seed=0)).seed == 0
    assert resolve(SamplingFields()).seed != resolve(SamplingFields()).seed


@pytest.mark.parametrize(
    "token_id", ["260", "-1", "1.5", "x", "", "²", "٥", "05", "9" * 30, "9" * 5000]
)
def test_logit_bias_wants_token_ids(token_id: str) -> None:
    assert resolve(SamplingFields(logit_bias={"0": 1.0, "259": -2.0})).logit_bias == (
        (0, 1.0),
        (259, -2.0),
    )
    with pytest.raises(InvalidRequest, match="token ids from 0 to 259"):
        resolve(SamplingFields(logit_bias={token_id: 1.0}))


def test_max_tokens_is_the_given_number_or_the_room_that_is_left() -> None:
    def fit(wanted: int | None, *, is_strict: bool = False) -> int:
        return fit_max_tokens(
            wanted, is_strict=is_strict, num_prompt_tokens=90, max_model_len=100, param="max_tokens"
        )

    assert (fit(None), fit(3), fit(10), fit(11)) == (10, 3, 10, 10)
    assert (fit(None, is_strict=True), fit(10, is_strict=True)) == (10, 10)
    with pytest.raises(ContextLengthExceeded, match="max_tokens must be <= 10, given 11") as caught:
        fit(11, is_strict=True)
    assert caught.value.param == "max_tokens"


@pytest.mark.parametrize(
    ("num_prompt_tokens", "width", "left"), [(8, 1, 32), (8, 4, 8), (9, 4, 7), (11, 8, 1)]
)
def test_beams_get_as_many_tokens_as_fit_into_the_cache(
    num_prompt_tokens: int, width: int, left: int
) -> None:
    def fit(max_tokens: int, *, is_strict: bool) -> int:
        return fit_beams(
            max_tokens,
            width,
            is_strict=is_strict,
            num_prompt_tokens=num_prompt_tokens,
            info=ROOM,
            param="max_tokens",
            width_param="num_beams",
        )

    assert fit(40, is_strict=False) == fit(left, is_strict=True) == left
    with pytest.raises(
        InvalidRequest,
        match=f"max_tokens must be <= {left} with {width} beams in this KV cache, given {left + 1}",
    ):
        fit(left + 1, is_strict=True)


def test_a_prompt_that_leaves_beams_no_room_is_refused() -> None:
    with pytest.raises(
        InvalidRequest, match="num_beams must be smaller for a prompt of 36 tokens, given 8 beams"
    ):
        fit_beams(
            4,
            8,
            is_strict=False,
            num_prompt_tokens=36,
            info=ROOM,
            param="max_tokens",
            width_param="num_beams",
        )
