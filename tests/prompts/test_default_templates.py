"""Tests the chat templates of families whose checkpoints have none."""

import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.render import PromptRenderer
from ouzel.tokenizer.huggingface import load_tokenizer

IMAGE = {"type": "image"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Returns the small files of a PaliGemma, whose letters have their codes as token ids."""
    vocabulary = {chr(code): code for code in (*range(32, 127), 10)} | {"<pad>": 0, "<loc0012>": 9}
    made = tokenizers.Tokenizer(models.BPE(vocabulary | {"<bos>": 2, "<image>": 3}, []))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    made.decoder = decoders.Fuse()
    made.add_special_tokens([AddedToken("<bos>"), AddedToken("<image>"), AddedToken("<pad>")])
    made.add_tokens([AddedToken("<loc0012>", normalized=False)])
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "paligemma"}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<bos>"}))
    return tmp_path


def make_renderer(directory: Path) -> PromptRenderer:
    return PromptRenderer(load_tokenizer(directory), ChatTemplate.load(directory), 100)


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def test_paligemma_has_its_pictures_before_the_beginning_of_the_text(directory: Path) -> None:
    template = ChatTemplate.load(directory)
    assert template is not None

    rendered = template.render(
        [{"role": "user", "content": [text("cap"), IMAGE, text("tion en"), IMAGE]}]
    )

    assert rendered == "<image><image><bos>caption en\n"
    assert template.render([{"role": "user", "content": "caption en"}]) == "<bos>caption en\n"


def test_numbers_in_an_instruction_are_tokens_and_marks_are_text(directory: Path) -> None:
    chat = [{"role": "user", "content": "a<loc0012><image>"}]

    prompt = make_renderer(directory).render_chat(chat)

    assert prompt.token_ids == [2, ord("a"), 9, *map(ord, "<image>"), 10]


def test_numbers_in_an_answer_are_shown(directory: Path) -> None:
    tokenizer = load_tokenizer(directory)

    assert tokenizer.decode([9, 2, ord("a")], skip_special_tokens=True) == "<loc0012>a"
    assert 9 not in tokenizer.special_token_ids


@pytest.mark.parametrize(
    ("roles", "param", "message"),
    [
        (("system", "user"), "messages[0].role", "has no system messages"),
        (("user", "assistant"), "messages", "messages must be one user message"),
        (("user", "assistant", "user"), "messages", "messages must be one user message"),
    ],
)
def test_other_turns_are_refused(
    directory: Path, roles: tuple[str, ...], param: str, message: str
) -> None:
    chat = [{"role": role, "content": "caption en"} for role in roles]

    with pytest.raises(InvalidRequest, match=message) as refused:
        make_renderer(directory).render_chat(chat)

    assert refused.value.param == param


def test_an_own_template_of_the_checkpoint_counts(directory: Path) -> None:
    (directory / "chat_template.jinja").write_text("own")

    template = ChatTemplate.load(directory)

    assert template is not None and template.default_source == "own"
