"""A template in a request may do anything within its limits, and disturbs no other request."""

from collections.abc import Iterator

import pytest

from ouzel.errors import InvalidRequest
from ouzel.limited_process import Limits
from ouzel.prompts.chat_template import ChatTemplate, Tools
from ouzel.prompts.marked_text import MarkedText, StandIns
from ouzel.prompts.messages import Message
from ouzel.prompts.spellings import Spellings
from ouzel.prompts.template_trials.request_templates import RequestTemplates
from tests.prompts.families import QWEN

MARKS = {"<|im_start|>", "<|im_end|>", "<think>"}
HELLO: list[Message] = [{"role": "user", "content": "Hello"}]
CHAT: list[Message] = [
    {"role": "user", "content": "What is <|im_end|>?"},
    {"role": "assistant", "content": "<think>\nWell\n</think>\n\nThe end of <|im_start|>"},
]
ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}"


@pytest.fixture(scope="module")
def templates() -> Iterator[RequestTemplates]:
    limits = Limits(wall_s=120, cpu_s=0.5, memory_bytes=64 * 2**20)
    templates = RequestTemplates({"eos_token": "</s>"}, MARKS, {"<think>"}, limits)
    yield templates
    templates.close()


def test_a_template_of_a_request_renders_as_in_this_process(templates: RequestTemplates) -> None:
    stand_ins = StandIns(Spellings(MARKS)), StandIns(Spellings(["<think>"]))
    here = ChatTemplate({"default": QWEN}, {}).with_stand_ins(*stand_ins)
    there = templates.template(QWEN, frozenset({"poet"}))
    assert there.capabilities == here.capabilities
    assert there.variables_read() == here.variables_read()
    assert there.reserved_names == here.reserved_names | {"eos_token"}
    assert (there.reasons, there.shows_role("poet")) == (here.reasons, here.shows_role("poet"))
    function = {"name": "look", "parameters": {"limit": 2**70, "x": [None, 0.5]}}
    tools: Tools = [{"type": "function", "function": function}]
    for variables in ({}, {"enable_thinking": False, "x": -(2**70)}):
        rendered = there.write_chat(CHAT, tools=tools, variables=variables)
        assert rendered == here.write_chat(CHAT, tools=tools, variables=variables)
    assert there.write_chat(CHAT, is_unfinished=True) == here.write_chat(CHAT, is_unfinished=True)


def test_a_template_cannot_reveal_how_the_server_recognises_marks(
    templates: RequestTemplates,
) -> None:
    """A template can spell a mark for later messages, but the spelling is plain text there."""
    source = "{{ '<|im_start|>'|list|join('-') }}{{ messages[0].content }}"
    shown = templates.template(source, frozenset()).write_chat(HELLO)
    assert shown == MarkedText("<-|-i-m-_-s-t-a-r-t-|->Hello", ())
    chat: list[Message] = [{"role": "user", "content": shown.text.replace("-", "")}]
    assert templates.template(source, frozenset()).write_chat(chat).spans == ()


def test_half_characters_in_a_message_are_refused(templates: RequestTemplates) -> None:
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        templates.template("x", frozenset()).write_chat([{"role": "user", "content": "\ud800"}])


def test_half_characters_come_back_as_they_are(templates: RequestTemplates) -> None:
    assert templates.template("{{ '\\ud800' }}", frozenset()).write_chat(HELLO).text == "\ud800"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (ENDLESS, "chat_template must be rendered within 0.5 s of processor time"),
        (
            "{{ ([0] * 30000000 * messages[:1]|length)|length }}",
            "must be rendered within 64 MiB of memory",
        ),
        (
            (
                "{% set n = 30000000 * messages[:1]|length %}"
                "{{ ['a' * n, 'b' * n, 'c' * n, 'd' * n, 'e' * n]|length }}"
            ),
            r"within (64 MiB of memory|0\.5 s of processor time)",
        ),
        ("{{ raise_exception('not you') }}", "the chat template refuses these messages: not you"),
        (
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "cannot render these messages: maximum recursion",
        ),
        ("{% if %}", "chat_template is broken: line 1: "),
    ],
    ids=["time", "memory of a list", "memory of texts", "refusal", "recursion", "syntax"],
)
@pytest.mark.parametrize("is_probed", [True, False])
def test_a_template_that_fails_is_the_requests_fault(
    templates: RequestTemplates, body: str, message: str, is_probed: bool
) -> None:
    """The template fails in the probe's chats too if `is_probed` is set."""
    source = body if is_probed else f"{{% if messages[0].content == 'Hello' %}}{body}{{% endif %}}"
    with pytest.raises(InvalidRequest, match=message) as caught:
        templates.template(source, frozenset()).write_chat(HELLO)
    assert caught.value.param == "chat_template"
    assert templates.template("fine", frozenset()).write_chat(HELLO).text == "fine"
