"""Prompts are cut to a number of tokens.

The tokenizer here has a token for each byte and puts <s> before every text.
"""

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors

from ouzel.errors import ContextLengthExceeded
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.render import PromptRenderer
from ouzel.prompts.truncation import Truncation
from ouzel.tokenizer.huggingface import HuggingFaceTokenizer
from tests.api.byte_tokens import byte_alphabet, byte_tokenizer

BOS = 256


@pytest.fixture(scope="module")
def renderer() -> PromptRenderer:
    library_tokenizer = tokenizers.Tokenizer(
        models.BPE({character: byte for byte, character in enumerate(byte_alphabet())}, [])
    )
    library_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library_tokenizer.decoder = decoders.ByteLevel()
    library_tokenizer.add_special_tokens([AddedToken("<s>", special=True)])
    library_tokenizer.post_processor = processors.TemplateProcessing(
        "<s> $A", special_tokens=[("<s>", BOS)]
    )
    template = ChatTemplate({"default": "{{ messages[0].content }}"}, {})
    return PromptRenderer(HuggingFaceTokenizer(library_tokenizer, {}), template, max_model_len=16)


def test_of_a_long_text_no_more_is_read_than_matters_though_a_token_may_be_long() -> None:
    tokenizer = byte_tokenizer("=" * 9999)  # one token for 9,999 characters
    renderer = PromptRenderer(tokenizer, None, max_model_len=64)
    text = "abcdefg" * 70_000
    with pytest.raises(ContextLengthExceeded, match="more than 64 tokens, of 490000 characters"):
        renderer.render_text(text)
    assert renderer.render_text("=" * 9999 * 50).token_ids == [tokenizer.token_id("=" * 9999)] * 50
    for truncation, kept in ((Truncation(4), b"defg"), (Truncation(4, keeps_end=False), b"abcd")):
        assert renderer.render_text(text, truncation=truncation).token_ids == [*kept]


@pytest.mark.parametrize(
    ("truncation", "token_ids", "text"),
    [
        (None, [BOS, *b"abcdef"], "abcdef"),
        (Truncation(7), [BOS, *b"abcdef"], "abcdef"),
        (Truncation(4), [BOS, *b"def"], "def"),
        (Truncation(4, keeps_end=False), [BOS, *b"abc"], "abc"),
        (Truncation(1), [BOS], ""),
    ],
)
def test_a_cut_text_keeps_the_first_token_of_the_model(
    renderer: PromptRenderer, truncation: Truncation | None, token_ids: list[int], text: str
) -> None:
    prompt = renderer.render_text("abcdef", truncation=truncation)
    assert (prompt.token_ids, prompt.text) == (token_ids, text)


def test_without_special_tokens_only_the_text_is_cut(renderer: PromptRenderer) -> None:
    assert renderer.render_text("abc", add_special_tokens=False).token_ids == list(b"abc")
    prompt = renderer.render_text("abcdef", add_special_tokens=False, truncation=Truncation(2))
    assert prompt.token_ids == list(b"ef")


def test_token_ids_and_chats_are_cut_as_they_are(renderer: PromptRenderer) -> None:
    assert renderer.render_token_ids([BOS, *b"abc"], truncation=Truncation(2)).text == "bc"
    assert (
        renderer.render_token_ids([*b"abc"], truncation=Truncation(2, keeps_end=False)).text == "ab"
    )
    chat = [{"role": "user", "content": "abcdef"}]
    assert renderer.render_chat(chat, truncation=Truncation(3)).token_ids == list(b"def")


def test_a_text_far_beyond_the_context_is_cut_rather_than_refused(renderer: PromptRenderer) -> None:
    assert renderer.render_text("a" * 100_000 + "xyz", truncation=Truncation(4)).text == "xyz"
    assert (
        renderer.render_text("xyz" + "a" * 100_000, truncation=Truncation(4, keeps_end=False)).text
        == "xyz"
    )


def test_a_truncation_to_more_than_the_context_is_refused(renderer: PromptRenderer) -> None:
    with pytest.raises(ContextLengthExceeded, match="your prompt resulted in 16 tokens"):
        renderer.render_text("a" * 100, truncation=Truncation(16))
