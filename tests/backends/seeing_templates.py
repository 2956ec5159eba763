"""Holds chat templates that place pictures like the published templates of the families.

The places of pictures, the special tokens around them and the line breaks follow published
templates, as do the names of content parts. The other words are Ouzel's own.
"""

# Each picture keeps its place in the message, between two special tokens; `add_vision_id` numbers
# the pictures.
QWEN2_VL = """\
{%- set seen = namespace(images=0, videos=0) -%}
{%- for message in messages -%}
{%- if loop.first and message['role'] != 'system' -%}<|im_start|>system
You answer.<|im_end|>
{% endif -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string -%}
{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' or 'image' in part or 'image_url' in part -%}
{%- set seen.images = seen.images + 1 -%}
{%- if add_vision_id -%}Picture {{ seen.images }}: {% endif -%}
<|vision_start|><|image_pad|><|vision_end|>
{%- elif part['type'] == 'video' or 'video' in part -%}
{%- set seen.videos = seen.videos + 1 -%}
{%- if add_vision_id -%}Video {{ seen.videos }}: {% endif -%}
<|vision_start|><|video_pad|><|vision_end|>
{%- elif 'text' in part -%}
{{ part['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}
"""

# A macro writes the same as QWEN2_VL. Qwen3.5 opens its reasoning at the end.
_QWEN3 = """\
{%- macro shown(content) -%}
{%- if content is string -%}{{ content }}
{%- else -%}
{%- for part in content -%}
{%- if part.type == 'image' or 'image' in part or 'image_url' in part -%}
{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- elif part.type == 'video' or 'video' in part -%}
{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}
{%- elif 'text' in part -%}{{- part.text -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + shown(message.content) + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\nTHINK' -}}{%- endif -%}
"""
QWEN3_VL = _QWEN3.replace("THINK", "")
QWEN3_5 = _QWEN3.replace("THINK", "<think>\\n")

# All pictures of a message stand before the texts, and a line break follows each picture.
LLAVA = """\
{%- for message in messages -%}
{%- if message['role'] != 'system' -%}{{ message['role'].upper() + ': ' }}{%- endif -%}
{%- for part in message['content'] | selectattr('type', 'equalto', 'image') -%}
{{ '<image>\\n' }}
{%- endfor -%}
{%- for part in message['content'] | selectattr('type', 'equalto', 'text') -%}
{{ part['text'] + ' ' }}
{%- endfor -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'ASSISTANT:' }}{%- endif -%}
"""
LLAVA_NEXT = """\
{%- for message in messages -%}
{%- if message['role'] == 'user' -%}{{ '[INST] ' }}{%- endif -%}
{%- for part in message['content'] | selectattr('type', 'equalto', 'image') -%}
{{ '<image>\\n' }}
{%- endfor -%}
{%- for part in message['content'] | selectattr('type', 'equalto', 'text') -%}
{{ part['text'] }}
{%- endfor -%}
{{- ' [/INST]' if message['role'] == 'user' else '</s> ' -}}
{%- endfor -%}
"""
# Texts and pictures keep their places, and a line break follows each picture.
GRANITE_VISION = """\
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>\\n' -}}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{ '<image>\\n' }}
{%- elif part['type'] == 'text' -%}{{ part['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}
"""
# A line break stands before each text.
LLAVA_ONEVISION = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + ' ' -}}
{%- for part in message['content'] | selectattr('type', 'equalto', 'image') -%}
{{ '<image>' }}
{%- endfor -%}
{%- for part in message['content'] | selectattr('type', 'equalto', 'text') -%}
{{ '\\n' + part['text'] }}
{%- endfor -%}
{{- '<|im_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""

# Each picture keeps its place in the message, and a special token ends the picture.
MISTRAL = """\
{{- bos_token -}}
{%- for message in messages -%}
{%- if message['role'] == 'system' -%}
{{- '[SYSTEM_PROMPT]'
  + (message['content'] if message['content'] is string else message['content'][0]['text'])
  + '[/SYSTEM_PROMPT]' -}}
{%- elif message['role'] == 'user' -%}
[INST]
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for block in message['content'] -%}
{%- if block['type'] == 'text' -%}{{ block['text'] }}
{%- elif block['type'] in ['image', 'image_url'] -%}[IMG]
{%- else -%}{{ raise_exception('there are texts and pictures only') }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
[/INST]
{%- else -%}
{{- (message['content'] if message['content'] is string else message['content'][0]['text'])
  + eos_token -}}
{%- endif -%}
{%- endfor -%}
"""

# A space follows the colon, except before a picture.
_IDEFICS3 = """\
{{- 'BEGIN' -}}
{%- for message in messages -%}
{{- message['role'] | capitalize -}}
{{- ':' if message['content'][0]['type'] == 'image' else ': ' -}}
{%- for line in message['content'] -%}
{%- if line['type'] == 'text' -%}{{ line['text'] }}
{%- elif line['type'] == 'image' -%}{{ '<image>' }}
{%- endif -%}
{%- endfor -%}
<end_of_utterance>
{% endfor -%}
{%- if add_generation_prompt -%}{{ 'Assistant:' }}{%- endif -%}
"""
IDEFICS3 = _IDEFICS3.replace("BEGIN", "<|begin_of_text|>")
SMOLVLM = _IDEFICS3.replace("BEGIN", "<|im_start|>")

# Empty lines stand around a picture.
GEMMA4 = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' -}}
{%- if message['content'] is string -%}{{ message['content'] | trim }}
{%- else -%}
{%- for item in message['content'] -%}
{%- if item['type'] == 'image' -%}{{ '\\n\\n<|image|>\\n\\n' }}
{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<turn|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|turn>model\\n' }}{%- endif -%}
"""

# For a picture the template writes only the special token before the tokens of the picture.
GEMMA3 = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' -}}
{%- if message['content'] is string -%}{{ message['content'] | trim }}
{%- else -%}
{%- for item in message['content'] -%}
{%- if item['type'] == 'image' -%}{{ '<start_of_image>' }}
{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<end_of_turn>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}
"""

# Special tokens stand around a picture, and no end token behind a turn.
GLM_OCR = """\
[gMASK]<sop>
{%- for message in messages -%}
{{- '\\n<|' + message['role'] + '|>\\n' -}}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for item in message['content'] -%}
{%- if item['type'] == 'image' -%}{{ '<|begin_of_image|><|image|><|end_of_image|>' }}
{%- elif item['type'] == 'text' -%}{{ item['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '\\n<|assistant|>\\n' -}}{%- endif -%}
"""

# All pictures of a message stand before the texts, each between special tokens.
PADDLEOCR_VL = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- message['role'] | capitalize + ': ' -}}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for item in message['content'] | selectattr('type', 'equalto', 'image') -%}
{{ '<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>' }}
{%- endfor -%}
{%- for item in message['content'] | selectattr('type', 'equalto', 'text') -%}
{{ item['text'] }}
{%- endfor -%}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant: ' -}}{%- endif -%}
"""

# Each picture keeps its place in the message, without a line break around it.
LFM2_VL = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for content in message['content'] -%}
{%- if content['type'] == 'image' -%}{{ '<image>' }}
{%- elif content['type'] == 'text' -%}{{ content['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

# Each picture keeps its place in the message; a special token stands for it.
MINICPMV4_6 = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for content in message['content'] -%}
{%- if content['type'] == 'image' -%}{{ '<|image_pad|>' }}
{%- elif content['type'] == 'text' -%}{{ content['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' -}}
{%- endif -%}
"""

# The content of a message is a text.
MINICPMV = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

INTERNVL = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for content in message['content'] -%}
{%- if content['type'] == 'image' -%}{{ '<IMG_CONTEXT>\\n' }}
{%- elif content['type'] == 'video' -%}{{ '<video>\\n' }}
{%- elif content['type'] == 'text' -%}{{ content['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
