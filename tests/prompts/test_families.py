"""Templates in the manner of the model families render whole chats."""

import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_rendering import ChatRendering
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.messages import Message
from ouzel.prompts.render import PromptRenderer
from ouzel.prompts.template_trials.capabilities import TemplateCapabilities
from tests.api.byte_tokens import byte_tokenizer
from tests.prompts.families import FAMILIES

SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TOOLS: list[dict[str, object]] = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
]
USER: Message = {"role": "user", "content": "Where is Turku?"}
CALL: Message = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "abcdef123",
            "type": "function",
            "function": {"name": "look", "arguments": '{"at": "Åbo"}'},
        }
    ],
}
RESULT: Message = {"role": "tool", "tool_call_id": "abcdef123", "content": "60.45"}


def renderer(family: str) -> PromptRenderer:
    return PromptRenderer(
        byte_tokenizer(), ChatTemplate({"default": FAMILIES[family]}, SPECIAL_TOKENS), 4096
    )


def chat_text(family: str, *messages: Message, **wanted: object) -> str:
    rendering = ChatRendering(**wanted)  # type: ignore[arg-type]
    return renderer(family).encode_chat(list(messages), rendering)[0]


def capabilities(family: str) -> TemplateCapabilities:
    template = renderer(family).chat_template
    assert template is not None
    return template.capabilities


ANSWER_STARTS = {
    "qwen": "<|im_start|>assistant\n",
    "llama 3": "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "mistral": "[/INST]",
    "deepseek": "<｜Assistant｜><think>\n",
    "deepseek with a switch": "<｜Assistant｜></think>",
    "gemma": "<start_of_turn>model\n",
    "gemma 3": "<start_of_turn>model\n",
    "phi": "<|assistant|>",
    "granite": "<|start_of_role|>assistant<|end_of_role|>",
    "harmony": "<|start|>assistant",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_chat_ends_where_the_answer_starts(family: str) -> None:
    parts = [{"type": "text", "text": "Where"}, {"type": "text", "text": "is Turku?"}]
    assistant: Message = {"role": "assistant", "content": "In Finland."}
    text = chat_text(family, USER, assistant, {"role": "user", "content": parts})
    assert text.endswith(ANSWER_STARTS[family])
    assert "Where is Turku?" in text and "In Finland." in text
    assert text.count("is Turku?") == 2
    assert "[{" not in text and "{'" not in text


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "content", ["In Fin", " In Finland, \n", "  one\n\ntwo ", "", "<think>\nx\n</think>\n\nIn F"]
)
def test_the_final_message_goes_on(family: str, content: str) -> None:
    final: Message = {"role": "assistant", "content": content}
    text = chat_text(family, USER, final, continue_final_message=True)
    shown = content if "</think>" not in content or content in text else "In F"
    assert text.endswith(shown.lstrip())
    assert "mark" not in text
    as_part: Message = {"role": "assistant", "content": [{"type": "text", "text": content}]}
    assert (
        chat_text(family, USER, as_part, continue_final_message=True, add_generation_prompt=False)
        == text
    )


@pytest.mark.parametrize("family", ["gemma", "mistral"])
def test_a_refusal_of_the_template_is_the_message(family: str) -> None:
    with pytest.raises(InvalidRequest, match=r"the chat template refuses these messages: .*user"):
        chat_text(family, USER, USER)


def test_no_system_messages_for_gemma() -> None:
    with pytest.raises(InvalidRequest, match="has no system messages"):
        chat_text("gemma", {"role": "system", "content": "Be kind."}, USER)


@pytest.mark.parametrize(
    ("family", "call"),
    [
        ("qwen", '{"name": "look", "arguments": {"at": "Åbo"}}'),
        ("llama 3", '{"name": "look", "parameters": {"at": "Åbo"}}'),
        (
            "mistral",
            '[TOOL_CALLS][{"name": "look", "arguments": {"at": "Åbo"}, "id": "abcdef123"}]',
        ),
        ("deepseek", '<｜tool▁call▁begin｜>look\n{"at": "Åbo"}<｜tool▁call▁end｜>'),
        ("harmony", 'to=functions.look<|message|>{"at": "Åbo"}<|call|>'),
    ],
)
def test_earlier_calls_come_in_the_familys_own_form(family: str, call: str) -> None:
    assert capabilities(family).tool_calls
    text = chat_text(family, USER, CALL, RESULT)
    assert call in text
    assert "60.45" in text


@pytest.mark.parametrize("family", ["qwen", "llama 3", "mistral", "granite"])
def test_tools_reach_the_prompt(family: str) -> None:
    assert '"name": "look"' in chat_text(family, USER, tools=TOOLS)


@pytest.mark.parametrize("family", ["gemma", "phi", "deepseek"])
def test_tools_that_the_template_would_leave_out_are_refused(family: str) -> None:
    with pytest.raises(InvalidRequest, match="has no tools"):
        chat_text(family, USER, tools=TOOLS)


@pytest.mark.parametrize("family", ["gemma", "phi", "granite"])
def test_calls_that_the_template_would_leave_out_are_refused(family: str) -> None:
    with pytest.raises(InvalidRequest, match=r"no tool calls|refuses these messages"):
        chat_text(family, USER, CALL, RESULT)


def test_keys_that_only_the_template_knows_are_passed_on() -> None:
    system: Message = {"role": "system", "content": "Be kind.", "tools": '[{"name": "look"}]'}
    assert '<|system|>Be kind.<|tool|>[{"name": "look"}]<|/tool|><|end|>' in chat_text(
        "phi", system, USER
    )


def test_documents_reach_the_prompt() -> None:
    text = chat_text("granite", USER, documents=[{"doc_id": 7, "text": "Turku is old."}])
    assert (
        '<|start_of_role|>document {"document_id": "7"}<|end_of_role|>Turku is old.<|end_of_text|>'
        in text
    )


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize(
    ("family", "reasoning_key"), [("qwen", "reasoning_content"), ("harmony", "thinking")]
)
def test_reasoning_takes_the_name_that_the_template_reads(
    family: str, reasoning_key: str, key: str
) -> None:
    assert capabilities(family).reasoning_key == reasoning_key
    assert "A city?" in chat_text(family, USER, {**CALL, key: "A city?"}, RESULT)


@pytest.mark.parametrize(
    ("family", "wanted", "answer_start"),
    [
        ("qwen", {"enable_thinking": False}, "<think>\n\n</think>\n\n"),
        ("qwen", {"thinking": False}, "<think>\n\n</think>\n\n"),
        ("qwen", {"template_kwargs": {"thinking": False}}, "<think>\n\n</think>\n\n"),
        ("qwen", {"reasoning_effort": "none"}, "<think>\n\n</think>\n\n"),
        ("qwen", {"reasoning_effort": "minimal"}, "<think>\n\n</think>\n\n"),
        ("qwen", {"reasoning_effort": "low"}, "assistant\n"),
        ("qwen", {"reasoning_effort": "high", "enable_thinking": True}, "assistant\n"),
        ("deepseek with a switch", {"enable_thinking": True}, "<think>"),
        ("deepseek with a switch", {"reasoning_effort": "medium"}, "<think>"),
        ("deepseek with a switch", {"enable_thinking": False}, "</think>"),
        ("gemma", {"enable_thinking": False}, "model\n"),
        (
            "gemma",
            {"reasoning_effort": "none", "template_kwargs": {"enable_thinking": None}},
            "model\n",
        ),
        (
            "granite",
            {"template_kwargs": {"controls": {"length": "short"}}},
            '{"length": "short"}<|end_of_role|>',
        ),
    ],
)
def test_reasoning_is_switched_as_the_template_can(
    family: str, wanted: dict[str, object], answer_start: str
) -> None:
    assert chat_text(family, USER, **wanted).endswith(answer_start)


def test_reasoning_effort_goes_to_the_template_that_reads_it() -> None:
    assert "Reasoning: high" in chat_text("harmony", USER, reasoning_effort="high")


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({}, "off"),
        ({"reasoning_effort": "high"}, "on, high"),
        ({"template_kwargs": {"reasoning_effort": "low"}}, "on, low"),
        ({"reasoning_effort": "minimal"}, "off, minimal"),
        ({"reasoning_effort": "none"}, "off, none"),
        ({"reasoning_effort": "high", "enable_thinking": False}, "off, high"),
        ({"reasoning_effort": "high", "template_kwargs": {"enable_thinking": False}}, "off, high"),
    ],
)
def test_an_effort_turns_the_switch_of_the_same_template_on(
    wanted: dict[str, object], text: str
) -> None:
    template = (
        "{{ 'on' if enable_thinking is defined and enable_thinking else 'off' }}"
        "{{ ', ' + reasoning_effort if reasoning_effort is defined }}{% for message in messages %}"
        "{% endfor %}"
    )
    renderer = PromptRenderer(
        byte_tokenizer(), ChatTemplate({"default": template}, SPECIAL_TOKENS), 4096
    )
    rendering = ChatRendering(**wanted)  # type: ignore[arg-type]
    assert renderer.encode_chat([USER], rendering)[0] == text


@pytest.mark.parametrize(
    ("family", "wanted", "param", "message"),
    [
        ("gemma", {"enable_thinking": True}, "enable_thinking", "does not read enable_thinking"),
        (
            "gemma",
            {"reasoning_effort": "low"},
            "reasoning_effort",
            "does not read reasoning_effort",
        ),
        # DeepSeek reasons in either case.
        ("deepseek", {"enable_thinking": False}, "enable_thinking", "does not read"),
        ("deepseek", {"reasoning_effort": "none"}, "reasoning_effort", "does not read"),
        ("harmony", {"thinking": True}, "thinking", "does not read thinking"),
        ("gemma", {"documents": [{"text": "x"}]}, "documents", "does not read documents"),
        (
            "gemma",
            {"template_kwargs": {"mood": 1}},
            "chat_template_kwargs.mood",
            "does not read mood",
        ),
        ("qwen", {"enable_thinking": True, "thinking": False}, "thinking", "contradicts"),
        (
            "qwen",
            {"enable_thinking": False, "reasoning_effort": "low"},
            "enable_thinking",
            "contradicts",
        ),
        (
            "qwen",
            {"enable_thinking": True, "template_kwargs": {"enable_thinking": False}},
            "enable_thinking",
            "contradicts",
        ),
        (
            "qwen",
            {"template_kwargs": {"messages": []}},
            "chat_template_kwargs.messages",
            "itself provides messages",
        ),
        (
            "qwen",
            {"template_kwargs": {"tools": []}},
            "chat_template_kwargs.tools",
            "itself provides tools",
        ),
        (
            "qwen",
            {"template_kwargs": {"bos_token": ""}},
            "chat_template_kwargs.bos_token",
            "itself provides bos_token",
        ),
        (
            "gemma",
            {"template_kwargs": {"raise_exception": 1}},
            "chat_template_kwargs.raise_exception",
            "itself provides",
        ),
        (
            "qwen",
            {"template_kwargs": {"add_generation_prompt": "no"}},
            "chat_template_kwargs.add_generation_prompt",
            "must be true or false",
        ),
        (
            "qwen",
            {"continue_final_message": True, "add_generation_prompt": True},
            "continue_final_message",
            "must not be true when add_generation_prompt is true",
        ),
        ("qwen", {"chat_template": "x"}, "chat_template", "--trust-request-chat-template"),
    ],
)
def test_an_argument_without_effect_is_refused(
    family: str, wanted: dict[str, object], param: str, message: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        chat_text(family, USER, **wanted)
    assert caught.value.param == param
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "{% for m in messages %}{{ m.content[:3] }}{% endfor %}",
            "does not write the last message as it is",
        ),
        (
            "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
            "does not write the last message as it is",
        ),
        ("{{ messages[0].content }}", "does not write the last message as it is"),
    ],
)
def test_a_final_message_that_the_template_changes_cannot_go_on(source: str, message: str) -> None:
    renderer = PromptRenderer(byte_tokenizer(), ChatTemplate({"default": source}, {}), 4096)
    with pytest.raises(InvalidRequest, match=message) as caught:
        renderer.encode_chat(
            [USER, {"role": "assistant", "content": "In Finland"}],
            ChatRendering(continue_final_message=True),
        )
    assert caught.value.param == "continue_final_message"


def test_calls_cannot_go_on() -> None:
    with pytest.raises(InvalidRequest, match="without tool calls"):
        chat_text("qwen", USER, CALL, continue_final_message=True)


def test_a_template_of_the_requests_own_is_rendered_when_it_is_trusted() -> None:
    trusting = PromptRenderer(byte_tokenizer(), None, 4096, trusts_request_template=True)
    own = ChatRendering(
        chat_template="{{ eos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}"
    )
    assert trusting.encode_chat([USER], own)[0] == "<|im_end|>[Where is Turku?]"
    with pytest.raises(InvalidRequest, match="chat_template is broken: line 2: ") as caught:
        trusting.encode_chat([USER], ChatRendering(chat_template="\n{% if %}"))
    assert caught.value.param == "chat_template"
    trusting.close()
