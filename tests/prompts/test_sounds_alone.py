"""Templates that show users' sounds and no texts of users are recognised."""

import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_rendering import ChatRendering
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.messages import Message
from ouzel.prompts.render import PromptRenderer
from tests.api.byte_tokens import byte_tokenizer

# Templates with the structure of Qwen3-ASR's templates, in our words.
SOUNDS_ALONE = """
{%- for message in messages if message.role == 'system' %}
    {{- 'system:' + message.content }}
{%- endfor %}
{%- for message in messages if message.content is not string %}
    {%- for part in message.content if 'audio' in part %}{{- '<|audio_pad|>' }}{% endfor %}
{%- endfor %}
"""
WITH_ANSWERS = (
    SOUNDS_ALONE
    + """
{%- for message in messages if message.role == 'assistant' %}
    {{- 'assistant:' }}{% generation %}{{- message.content + '<|im_end|>' }}{% endgeneration %}
{%- endfor %}
"""
)
SILENT: Message = {"role": "user", "content": ""}
ANSWER: Message = {"role": "assistant", "content": "language German"}


def render(source: str, *messages: Message, **wanted: bool) -> str:
    renderer = PromptRenderer(byte_tokenizer(), ChatTemplate({"default": source}, {}), 4096)
    rendering = ChatRendering(**wanted)  # type: ignore[arg-type]
    return renderer.encode_chat(list(messages), rendering)[0]


@pytest.mark.parametrize("source", [SOUNDS_ALONE, WITH_ANSWERS])
def test_a_text_of_a_user_is_refused(source: str) -> None:
    with pytest.raises(InvalidRequest, match="no texts of users") as caught:
        render(source, {"role": "user", "content": "Who?"})

    assert caught.value.param == "messages[0].content"


def test_a_system_message_is_shown() -> None:
    assert render(SOUNDS_ALONE, {"role": "system", "content": "Ouzel"}, SILENT) == "system:Ouzel"


def test_an_answer_that_is_left_out_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no earlier answers") as caught:
        render(SOUNDS_ALONE, SILENT, ANSWER)

    assert caught.value.param == "messages[1].role"


def test_a_begun_answer_is_continued() -> None:
    text = render(WITH_ANSWERS, SILENT, ANSWER, continue_final_message=True)

    assert text == "assistant:language German"
