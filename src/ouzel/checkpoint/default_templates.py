"""Has chat templates of families whose checkpoints have none, by model_type."""

# PaliGemma was trained on pictures, a beginning of text, one instruction and a line break
# (transformers, models/paligemma/processing_paligemma.py). It knows no turns.
_PALIGEMMA = """\
{%- if messages | length != 1 or messages[0].role != 'user' -%}
{{- raise_exception('this model has no turns: messages must be one user message') -}}
{%- endif -%}
{%- set content = messages[0].content -%}
{%- if content is not string -%}
{%- for part in content if part.type == 'image' -%}{{- '<image>' -}}{%- endfor -%}
{%- endif -%}
{{- bos_token -}}
{%- if content is string -%}
{{- content -}}
{%- else -%}
{%- for part in content if part.type == 'text' -%}{{- part.text -}}{%- endfor -%}
{%- endif -%}
{{- '\\n' -}}
"""

DEFAULT_TEMPLATES = {"paligemma": _PALIGEMMA}
