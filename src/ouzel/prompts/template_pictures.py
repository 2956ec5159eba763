"""Lets a chat template that reads texts only show pictures: each is a line of its message's text.

The lines are written by code in front of the template. So they belong to the template, and a
client's text with the same spelling stays text.
"""

import json

_BEFORE = """\
{%- set ouzel_chat = namespace(messages=[]) -%}
{%- for message in messages -%}
{%- if message.content is string or not message.content -%}
{%- set ouzel_chat.messages = ouzel_chat.messages + [message] -%}
{%- else -%}
{%- set ouzel_lines = namespace(texts=[]) -%}
{%- for part in message.content -%}
{%- set ouzel_lines.texts = ouzel_lines.texts + [
    part.text if part.type == 'text' else PLACEHOLDER
] -%}
{%- endfor -%}
{%- set text = ouzel_lines.texts | join('\\n') -%}
{%- set ouzel_chat.messages = ouzel_chat.messages + [dict(message, content=text)] -%}
{%- endif -%}
{%- endfor -%}
{%- set messages = ouzel_chat.messages -%}
{{- '' }}"""


def show_pictures_as_lines(source: str, placeholder: str) -> str:
    """Returns the source of a template that shows pictures by `placeholder`."""
    return _BEFORE.replace("PLACEHOLDER", json.dumps(placeholder, ensure_ascii=False)) + source
