"""Prompts put a prefix and a suffix around a gap, in the layouts of the model families."""

import pytest

from ouzel.errors import ContextLengthExceeded, InvalidRequest
from ouzel.prompts.infill import INFILL_FORMATS, Infill
from ouzel.prompts.render import PromptRenderer
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from tests.api.byte_tokens import byte_tokenizer
from tests.tokenizer.test_tokenizer_text import sentencepiece

LAYOUTS = {
    "Qwen": (
        ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
        "<|fim_prefix|>AB<|fim_suffix|>YZ<|fim_middle|>",
    ),
    "StarCoder": (
        ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
        "<fim_prefix>AB<fim_suffix>YZ<fim_middle>",
    ),
    "SantaCoder": (
        ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
        "<fim-prefix>AB<fim-suffix>YZ<fim-middle>",
    ),
    "DeepSeek": (
        ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
        "<｜fim▁begin｜>AB<｜fim▁hole｜>YZ<｜fim▁end｜>",
    ),
    "CodeLlama": (("▁<PRE>", "▁<SUF>", "▁<MID>"), "▁<PRE>AB▁<SUF>YZ▁<MID>"),
    "Codestral": (("[PREFIX]", "[SUFFIX]"), "[SUFFIX]YZ[PREFIX]AB"),
    "Seed-Coder": (
        ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"),
        "<[fim-suffix]>YZ<[fim-prefix]>AB<[fim-middle]>",
    ),
}


def test_every_format_has_its_case() -> None:
    assert len(LAYOUTS) == len(INFILL_FORMATS)


@pytest.mark.parametrize("family", LAYOUTS)
@pytest.mark.parametrize("prefix", ["AB", [65, 66]])
def test_a_layout(family: str, prefix: str | list[int]) -> None:
    tokens, expected = LAYOUTS[family]
    tokenizer = byte_tokenizer(*tokens)
    prompt = PromptRenderer(tokenizer, None, max_model_len=64).render_infill(prefix, "YZ")
    assert prompt.text == expected
    assert len(prompt.token_ids) == len(tokens) + len("ABYZ")  # a mark or a letter is one token
    assert set(prompt.end_token_ids) == {tokenizer.token_id(token) for token in tokens}


def test_an_end_that_only_some_models_have_counts_where_it_is() -> None:
    tokens, _ = LAYOUTS["CodeLlama"]
    infill = Infill.for_tokenizer(byte_tokenizer(*tokens, "▁<EOT>"))
    assert infill is not None
    assert infill.end_token_ids[-1] == 260 + len(tokens)


def test_a_suffix_after_a_gap_has_no_space_of_sentencepiece() -> None:
    library_tokenizer = sentencepiece(strips_first_space=True)
    library_tokenizer.add_special_tokens(["▁<PRE>", "▁<SUF>", "▁<MID>"])
    tokenizer = HuggingFaceTokenizer(library_tokenizer, {})
    prompt = PromptRenderer(tokenizer, None, max_model_len=64).render_infill("He", "wo r")
    tokens = [library_tokenizer.id_to_token(token_id) for token_id in prompt.token_ids]
    assert tokens == ["▁<PRE>", "▁", "H", "e", "▁<SUF>", "w", "o", "▁", "r", "▁<MID>"]


@pytest.mark.parametrize("family", LAYOUTS)
def test_control_tokens_in_a_file_are_its_text(family: str) -> None:
    tokens, expected = LAYOUTS[family]
    tokenizer = byte_tokenizer(*tokens)
    spelled = "".join(tokens)
    prompt = PromptRenderer(tokenizer, None, max_model_len=400).render_infill(
        f"A{spelled}", f"Y{spelled}"
    )
    assert prompt.text == expected.replace("AB", f"A{spelled}").replace("YZ", f"Y{spelled}")
    assert len(prompt.token_ids) == len(tokens) + len("AY") + 2 * len(spelled.encode())


def test_a_gap_may_be_at_the_beginning() -> None:
    renderer = PromptRenderer(byte_tokenizer(*LAYOUTS["Qwen"][0]), None, max_model_len=64)
    assert renderer.render_infill("", "Z").text == "<|fim_prefix|><|fim_suffix|>Z<|fim_middle|>"


def test_impossible_infills_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="no tokens to fill in the middle with") as caught:
        PromptRenderer(byte_tokenizer(), None, max_model_len=64).render_infill("A", "Z")
    assert caught.value.param == "suffix"
    renderer = PromptRenderer(byte_tokenizer(*LAYOUTS["Qwen"][0]), None, max_model_len=64)
    with pytest.raises(InvalidRequest) as caught:
        renderer.render_infill([65, 263], "Z", param="prompt[3]")
    assert caught.value.param == "prompt[3][1]"
    for num_chars in (61, 100_000):
        with pytest.raises(ContextLengthExceeded):
            renderer.render_infill("A", "Z" * num_chars)
