"""The dialect of Hugging Face chat templates is rendered, and a probe finds its capabilities."""

import time
from datetime import datetime
from pathlib import Path

import jinja2
import pytest

from ouzel.errors import InvalidRequest, ModelLoadError
from ouzel.prompts.chat_template import ChatTemplate, Tools
from ouzel.prompts.messages import Message
from ouzel.prompts.template_environment import (
    TemplateTooSlow,
    compile_template,
    render_template,
)
from ouzel.prompts.template_trials.capabilities import TemplateCapabilities

HELLO: list[Message] = [{"role": "user", "content": "Hello"}]
TOOLS: Tools = [{"type": "function", "function": {"name": "look"}}]

# Templates in the manner of model families
CHATML = """
{%- if tools %}{{ '<tools>' + tools | tojson + '</tools>' }}{% endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content }}
{%- for call in message.tool_calls %}
{{- '<tool_call>' ~ {'name': call.function.name, 'arguments': call.function.arguments} | tojson
    ~ '</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}
    {{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}
"""
LLAMA_2 = """
{%- for message in messages %}
{%- if message['role'] == 'user' %}
    {{- bos_token + '[INST] ' + message['content'].strip() + ' [/INST]' }}
{%- elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + ' ' + eos_token }}
{%- else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}
{%- endfor %}
"""
PARTS_ONLY = """
{%- for message in messages %}{{ message.role }}:
{%- for part in message.content %}
    {%- if part.type == 'text' %}
        {{- part.text }}
    {%- else %}<image>{% endif %}
{%- endfor %}
{%- endfor %}
"""
STRING_ARGUMENTS = """
{%- for message in messages %}{{ message.role }}: {{ message.content }}
{%- for call in message.tool_calls %}
    {{- call.function.name + '(' + call.function.arguments + ')' }}
{%- endfor %}
{%- endfor %}
"""
DUMP = "{{ messages | tojson }}"
LISTED_ROLES = """
{%- for message in messages %}{% if message.role in ('system', 'developer', 'user') %}
{{- message.role + ': ' + message.content }}{% endif %}{% endfor %}
"""


def template(source: str, **special_tokens: str) -> ChatTemplate:
    return ChatTemplate({"default": source}, special_tokens)


def rendered(source: str, **variables: object) -> str:
    return template(source).render(HELLO, variables=variables)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ messages[0].content }}{{ messages[0]['role'] }}", "Hellouser"),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),  # blocks leave no blank lines
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% generation %}a{{ messages[0].role }}{% endgeneration %}b", "auserb"),
        ("{{ {'b': '<é>', 'a': 1} | tojson }}", '{"b": "<é>", "a": 1}'),
        ("{{ {'b': 2, 'a': 1} | tojson(separators=(',', ':'), sort_keys=true) }}", '{"a":1,"b":2}'),
        ("{{ {'a': 'é'} | tojson(indent=1, ensure_ascii=true) }}", '{\n "a": "\\u00e9"\n}'),
        ("""{{ ('{"a": [5]}' | from_json).a[0] }}""", "5"),
        ("{{ tools is none }} {{ documents is none }} {{ unknown is defined }}", "True True False"),
        ("{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ ns.x }}", "2"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(1) }}", "<1>"),
    ],
)
def test_the_dialect(source: str, expected: str) -> None:
    assert rendered(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        (
            "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
            "{{ m(60) }}"
        ),
    ],
)
def test_a_template_that_would_not_end_is_stopped(source: str) -> None:
    with pytest.raises(TemplateTooSlow):
        render_template(compile_template(source), {}, max_cpu_s=0.01)
    with pytest.raises(InvalidRequest, match="took too long"):
        ChatTemplate({"default": source}, {}, max_cpu_s=0.01)


@pytest.mark.parametrize(
    "source",
    [
        "{% if %}",
        "{% break %}",
        "{% macro m() %}{% continue %}{% endmacro %}",
        "{% for a in b %}" * 30 + "{% endfor %}" * 30,
        "{{ " + "(" * 1000 + "1" + ")" * 1000 + " }}",
        "{{ " + "9" * 5000 + " }}",
    ],
)
def test_a_template_that_is_no_template_is_a_syntax_error(source: str) -> None:
    with pytest.raises(jinja2.TemplateSyntaxError):
        compile_template(source)


def test_the_probe_as_a_whole_is_stopped_too() -> None:
    source = "{% for i in range(20000) %}{% endfor %}{{ messages[0].content }}"
    template = compile_template(source)
    started_s = time.thread_time()
    for _ in range(5):
        render_template(template, {"messages": HELLO})
    with pytest.raises(InvalidRequest, match="took too long"):
        ChatTemplate({"default": source}, {}, max_cpu_s=time.thread_time() - started_s)


def test_any_name_may_be_an_argument() -> None:
    assert (
        rendered("{% set n = namespace(context=1, obj=2, self=3) %}{{ n.context }}{{ n.obj }}")
        == "12"
    )


def test_a_template_gets_the_date_of_today() -> None:
    assert rendered("{{ strftime_now('%Y') }}") in {
        str(datetime.now().year),
        str(datetime.now().year - 1),
    }


def test_every_special_token_is_a_variable() -> None:
    tokens = {"bos_token": "<s>", "pad_token": "<pad>", "image_token": "<image>"}
    source = "{{ bos_token }}{{ pad_token }}{{ image_token }}"
    assert template(source, **tokens).render(HELLO) == "<s><pad><image>"


def test_variables_reach_the_template() -> None:
    assert rendered(CHATML, enable_thinking=False).endswith("<think>\n\n</think>\n\n")
    assert rendered(CHATML, add_generation_prompt=False).endswith("Hello<|im_end|>\n")
    assert rendered("{{ self_ }}{{ documents[0] }}", self_="a", documents=["b"]) == "ab"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0].nothing.at_all }}", "has no attribute 'nothing'"),
        ("{{ messages[0].content + 1 }}", "can only concatenate str"),
        ("{{ messages[5].content }}", "has no element 5"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'x' | from_json }}", "Expecting value"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages | map('nonsense') | list }}", "nonsense"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
        ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
        ("{{ 'x' * 10**9 }}", "longer than 33554432 characters"),
        ("{{ 10**9 * [1] }}", "longer than 33554432 characters"),
        (
            (
                "{% set s = namespace(x='x') %}{% for i in range(99) %}{% set s.x = s.x + s.x %}"
                "{% endfor %}"
            ),
            "longer than",
        ),
        (
            (
                "{% set s = namespace(x='x') %}{% for i in range(99) %}{% set s.x = s.x ~ s.x %}"
                "{% endfor %}"
            ),
            "longer than",
        ),
        ("{{ '%99999999d' % 1 }}", "longer than 33554432"),
        ("{{ '%*d' % (99999999, 1) }}", "longer than 33554432"),
        ("{{ 10 ** 100000 }}", "more than 65536 bits"),
        (
            (
                "{% set s = namespace(x=9) %}{% for i in range(99) %}{% set s.x = s.x * s.x %}"
                "{% endfor %}"
            ),
            "65536 bits",
        ),
        (
            "{% for i in range(99999) %}{{ 'x' * 999 }}{% endfor %}",
            "longer than 33554432 characters",
        ),
    ],
)
def test_a_message_that_the_template_cannot_render_is_the_requests_fault(
    source: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        rendered(source)


def test_a_template_with_a_syntax_error_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("\n{% if %}")
    with pytest.raises(ModelLoadError, match=r"chat_template\.jinja is broken: line 2"):
        ChatTemplate.load(tmp_path)


def test_a_directory_without_a_template(tmp_path: Path) -> None:
    assert ChatTemplate.load(tmp_path) is None


def test_the_tool_template_is_taken_for_requests_with_tools(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(
        '{"bos_token": "<s>", "chat_template": [{"name": "default", "template": "plain '
        '{{ bos_token }}"},'
        ' {"name": "tool_use", "template": "tools {{ tools[0].function.name }}"}]}'
    )
    loaded = ChatTemplate.load(tmp_path)
    assert loaded is not None
    assert loaded.render(HELLO) == "plain <s>"
    assert loaded.render(HELLO, tools=[]) == "plain <s>"
    assert loaded.render(HELLO, tools=TOOLS) == "tools look"


def test_templates_beside_the_main_one_have_their_file_names(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("plain")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("tools")
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("{{ documents[0].text }}")
    loaded = ChatTemplate.load(tmp_path)
    assert loaded is not None
    assert loaded.render(HELLO) == "plain"
    assert loaded.render(HELLO, tools=TOOLS) == "tools"
    assert loaded.render(HELLO, variables={"documents": [{"text": "leaf"}]}) == "leaf"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            CHATML,
            TemplateCapabilities(
                takes_string_content=True,
                takes_content_parts=False,
                system_role=True,
                later_system_role=True,
                developer_role=False,
                tools=True,
                tool_calls=True,
                object_arguments=True,
                enable_thinking=True,
            ),
        ),
        (
            LLAMA_2,
            TemplateCapabilities(
                takes_string_content=True,
                takes_content_parts=False,
                system_role=False,
                developer_role=False,
                tools=False,
                tool_calls=False,
                object_arguments=False,
                enable_thinking=False,
                drops_tool_calls=True,
                drops_tool_results=True,
            ),
        ),
        (
            PARTS_ONLY,
            TemplateCapabilities(
                takes_string_content=False,
                takes_content_parts=True,
                system_role=True,
                later_system_role=True,
                developer_role=False,
                tools=False,
                tool_calls=False,
                object_arguments=False,
                enable_thinking=False,
                drops_tool_calls=True,
                drops_tool_results=True,
            ),
        ),
        (
            STRING_ARGUMENTS,
            TemplateCapabilities(
                takes_string_content=True,
                takes_content_parts=False,
                system_role=True,
                later_system_role=True,
                developer_role=False,
                tools=False,
                tool_calls=True,
                object_arguments=False,
                enable_thinking=False,
            ),
        ),
        (
            DUMP,
            TemplateCapabilities(
                takes_string_content=True,
                takes_content_parts=False,
                system_role=True,
                later_system_role=True,
                developer_role=False,
                tools=False,
                tool_calls=False,
                object_arguments=False,
                enable_thinking=False,
                reasoning_key="reasoning_content",
            ),
        ),
    ],
    ids=["chatml", "llama 2", "parts only", "string arguments", "dump"],
)
def test_the_capabilities_of_a_template_are_found(
    source: str, expected: TemplateCapabilities
) -> None:
    assert template(source, bos_token="<s>", eos_token="</s>").capabilities == expected


def test_a_developer_is_known_where_the_template_tells_it_from_just_any_role() -> None:
    assert template(LISTED_ROLES).capabilities.developer_role
    assert not template(CHATML).capabilities.developer_role


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("{% for message in messages %}{{ message.x }}{% endfor %}", {"messages"}),
        ("{% if a is not defined %}{% set a = 1 %}{% endif %}{{ a }}{% set b = 2 %}{{ b }}", {"a"}),
        ("{% set a = a | default('x') %}{% generation %}{{ c }}{% endgeneration %}", {"a", "c"}),
    ],
)
def test_the_variables_of_a_template_come_from_outside(text: str, variables: set[str]) -> None:
    named = ChatTemplate({"default": text, "tool_use": "{{ z }}"}, {})
    assert named.variables_read() == variables
    assert named.variables_read(tools=TOOLS) == {"z"}
