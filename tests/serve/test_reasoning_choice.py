"""The model's files decide whether its answers may have reasoning, unless an option decides."""

import json
from pathlib import Path

import pytest

from ouzel.config import ModelConfig
from ouzel.serve.output_format import read_output_format

CALLS = "<tool_call></tool_call>"
MESSAGES = "{% for message in messages %}{{ message.content }}{% endfor %}"
PIECES = "{% if enable_thinking %}{{ '<' ~ 'think' ~ '>' }}{% endif %}"


def write_model(directory: Path, *, template: str, tokens: list[str]) -> None:
    (directory / "chat_template.jinja").write_text(template)
    added = [
        {"id": place, "content": token, "special": False} for place, token in enumerate(tokens)
    ]
    (directory / "tokenizer.json").write_text(
        json.dumps({"added_tokens": added, "model": {"vocab": {}}})
    )


@pytest.mark.parametrize(
    ("template", "tokens", "reasoning_parser", "reasons"),
    [
        (MESSAGES + CALLS, ["<tool_call>", "</tool_call>"], "auto", False),  # Qwen 2.5
        (MESSAGES + CALLS, ["<tool_call>", "</tool_call>"], "hermes", True),
        (MESSAGES + CALLS, ["<think>", "</think>"], "auto", True),  # Qwen 3 Instruct
        (MESSAGES + CALLS, ["<think>", "</think>"], "none", False),
        (MESSAGES + CALLS + "<think>", [], "auto", True),
        (MESSAGES + CALLS + PIECES, [], "auto", True),
    ],
)
def test_a_model_reasons_where_its_template_or_its_tokenizer_knows_a_mark(
    tmp_path: Path, template: str, tokens: list[str], reasoning_parser: str, reasons: bool
) -> None:
    write_model(tmp_path, template=template, tokens=tokens)

    chosen = read_output_format(tmp_path, ModelConfig(reasoning_parser=reasoning_parser))

    assert chosen.calls is not None and chosen.calls.names[0] == "hermes"
    assert (chosen.reasoning is not None) == reasons


def test_a_tokenizer_that_cannot_be_read_knows_no_mark(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(MESSAGES + CALLS)
    (tmp_path / "tokenizer.json").write_text("{")

    assert read_output_format(tmp_path, ModelConfig()).reasoning is None
