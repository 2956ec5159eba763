"""The rendered chats show marks that the source of a template holds only in pieces."""

import pytest

from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.template_trials.switched_chats import render_switched_chats

MESSAGES = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
MARK = "{{ '<' ~ 'think' ~ '>' }}"


@pytest.mark.parametrize(
    ("template", "has_mark"),
    [
        (MESSAGES, False),
        (MESSAGES + MARK, True),
        (MESSAGES + "{% if enable_thinking %}" + MARK + "{% endif %}", True),
        (MESSAGES + "{% if enable_thinking is false %}" + MARK + "{% endif %}", True),
        (MESSAGES + "{% if thinking %}" + MARK + "{% endif %}", True),
        (MESSAGES + "{% if reasoning_effort == 'high' %}" + MARK + "{% endif %}", True),
        (MESSAGES + "{% if messages[-1].reasoning_content %}" + MARK + "{% endif %}", True),
        ("{% if not enable_thinking %}{{ raise_exception('No.') }}{% endif %}" + MARK, True),
    ],
)
def test_a_mark_that_a_switch_writes_is_in_the_texts(template: str, has_mark: bool) -> None:
    assert "<think>" not in template
    assert ("<think>" in render_switched_chats(ChatTemplate({"default": template}, {}))) == has_mark
