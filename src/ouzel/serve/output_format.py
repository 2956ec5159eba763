"""Chooses the parsers of a model's tool calls and reasoning."""

from functools import cache
from pathlib import Path

from ouzel.checkpoint.model_files import (
    read_added_tokens,
    read_chat_templates,
    read_response_template,
)
from ouzel.config import ModelConfig
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.template_trials.switched_chats import render_switched_chats


@cache
def read_output_format(directory: Path, model: ModelConfig) -> OutputFormat:
    """Chooses the output format by the options, the chat template or the response template.

    The choice is cached, because the registry logs it. Raises ModelLoadError.
    """
    templates = read_chat_templates(directory, model.chat_template)
    return choose_output_format(
        "\n".join(templates.by_name.values()) if templates else "",
        lambda: _read_marks(directory, model.chat_template),
        tool_parser=model.tool_parser,
        reasoning_parser=model.reasoning_parser,
        response_template=read_response_template(directory),
    )


def _read_marks(directory: Path, chat_template: str) -> str:
    """Returns the added tokens of the tokenizer and some rendered chats: both may hold marks.

    Raises ModelLoadError if the chat template cannot be used.
    """
    template = ChatTemplate.load(directory, chat_template)
    chats = "" if template is None else render_switched_chats(template)
    return "\n".join([*sorted(read_added_tokens(directory)), chats])
