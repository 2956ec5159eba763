"""Holds chat templates in the manner of model families: their markup and habits, in our words."""

QWEN = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{% endif %}
    {{- '# Tools\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{% endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(last=messages | length - 1, searching=true) %}
{%- for message in messages[::-1] %}
    {%- set index = messages | length - 1 - loop.index0 %}
    {%- if ns.searching and message.role == 'user' and message.content is string %}
        {%- set ns.searching = false %}{%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == 'assistant' %}
        {%- set content = message.content %}{%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n') %}
            {%- set reasoning = reasoning.split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.index0 > ns.last and (loop.last or reasoning) %}
            {{- '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- content.lstrip('\\n') }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- (call.function.arguments if call.function.arguments is string
                else call.function.arguments | tojson) }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

LLAMA_3 = """
{{- bos_token }}
{%- if not date_string is defined %}{%- set date_string = strftime_now('%d %b %Y') %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}{%- set messages = messages[1:] %}
{%- else %}{%- set system = '' %}{% endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' + 'Today: ' + date_string + '\\n\\n' }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- '\\n\\n' }}
    {%- endfor %}
{%- endif %}
{{- system + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'
            + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception('One tool call at a time, please.') }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + call.name
            + '", "parameters": ' }}
        {{- call.arguments | tojson }}{{- '}<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
        {%- if message.content is mapping %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

MISTRAL = """
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] %}{%- set rest = messages[1:] %}
{%- else %}{%- set rest = messages %}{% endif %}
{%- set ns = namespace(index=0) %}
{%- for message in rest %}
    {%- if not (message.role == 'tool' or (message.tool_calls is defined and message.tool_calls)) %}
        {%- if (message['role'] == 'user') != (ns.index % 2 == 0) %}
            {{- raise_exception('After the system message, user and assistant must take turns.') }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in rest %}
    {%- if message['role'] == 'user' %}
        {%- if tools is not none and loop.last %}
            {{- '[AVAILABLE_TOOLS]' + tools | tojson + '[/AVAILABLE_TOOLS]' }}
        {%- endif %}
        {%- if loop.last and system is defined %}
            {{- '[INST]' + system + '\\n\\n' + message['content'] + '[/INST]' }}
        {%- else %}{{- '[INST]' + message['content'] + '[/INST]' }}{% endif %}
    {%- elif message.tool_calls is defined and message.tool_calls %}
        {{- '[TOOL_CALLS][' }}
        {%- for call in message.tool_calls %}
            {%- if call.id is not defined or call.id | length != 9 %}
                {{- raise_exception('The id of a tool call has nine characters.') }}
            {%- endif %}
            {{- '{"name": "' + call.function.name + '", "arguments": '
                + call.function.arguments | tojson }}
            {{- ', "id": "' + call.id + '"}' }}{{- ', ' if not loop.last }}
        {%- endfor %}
        {{- ']' + eos_token }}
    {%- elif message['role'] == 'assistant' %}{{- ' ' + message['content'] | trim + eos_token }}
    {%- elif message['role'] == 'tool' %}
        {{- '[TOOL_RESULTS]{"content": ' + message.content | string + ', "call_id": "'
            + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}{{- raise_exception('Roles are system, user, assistant and tool.') }}{% endif %}
{%- endfor %}
"""

DEEPSEEK = """
{%- if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(is_tool=false, is_first=true, system='') %}
{%- for message in messages if message.role == 'system' %}
    {%- set ns.system = ns.system + ('' if ns.is_first else '\\n\\n') + message.content %}
    {%- set ns.is_first = false %}
{%- endfor %}
{{- bos_token }}{{- ns.system }}
{%- for message in messages %}
    {%- if message.role == 'user' %}{{- '<｜User｜>' + message.content }}
    {%- elif message.role == 'assistant' %}
        {%- if message.tool_calls %}
            {{- '<｜Assistant｜>' }}
            {%- if message.content %}
                {{- message.content }}
            {%- endif %}
            {{- '<｜tool▁calls▁begin｜>' }}
            {%- for call in message.tool_calls %}
                {{- '<｜tool▁call▁begin｜>' + call.function.name + '\\n' + call.function.arguments
                    + '<｜tool▁call▁end｜>' }}
            {%- endfor %}
            {{- '<｜tool▁calls▁end｜><｜end▁of▁sentence｜>' }}
        {%- else %}
            {%- set content = message.content %}
            {%- if '</think>' in content %}
                {%- set content = content.split('</think>')[-1] %}
            {%- endif %}
            {{- '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}
        {%- endif %}
    {%- elif message.role == 'tool' %}
        {{- '<｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜><think>\\n' }}{% endif %}
"""

DEEPSEEK_WITH_A_SWITCH = DEEPSEEK.replace(
    "{{- '<｜Assistant｜><think>\\n' }}",
    "{{- '<｜Assistant｜>' + ('<think>' if thinking is defined and thinking else '</think>') }}",
)

GEMMA = """
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {{- raise_exception('No system messages here.') }}
{%- endif %}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles go user, assistant, user, assistant.') }}
    {%- endif %}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
    {{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{% endif %}
"""

GEMMA_3 = """
{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set first = (messages[0].content if messages[0].content is string
        else messages[0].content[0].text) + '\\n\\n' %}
    {%- set turns = messages[1:] %}
{%- else %}{%- set first = '' %}{%- set turns = messages %}{% endif %}
{%- for message in turns %}
    {%- set role = 'model' if message.role == 'assistant' else message.role %}
    {{- '<start_of_turn>' + role + '\\n' + (first if loop.first else '') }}
    {%- if message.content is string %}{{- message.content | trim }}
    {%- elif message.content is iterable %}
        {%- for item in message.content %}
            {%- if item.type == 'image' %}
                {{- '<start_of_image>' }}
            {%- elif item.type == 'text' %}
                {{- item.text | trim }}
            {%- endif %}
        {%- endfor %}
    {%- else %}{{- raise_exception('Unknown content.') }}{% endif %}
    {{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{% endif %}
"""

PHI = """
{%- for message in messages %}
    {%- if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}
        {{- '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools']
            + '<|/tool|><|end|>' }}
    {%- else %}{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{% else %}{{- eos_token }}{% endif %}
"""

GRANITE = """
{%- macro turn(role, text) %}
    {{- '<|start_of_role|>' + role + '<|end_of_role|>' + text + '<|end_of_text|>\\n' }}
{%- endmacro %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}{%- set rest = messages[1:] %}
{%- else %}
    {%- set system = 'You are kind.' %}{%- set rest = messages %}
    {%- if thinking %}{%- set system = system + ' Think first.' %}{% endif %}
{%- endif %}
{{- turn('system', system) }}
{%- if tools %}{{- turn('available_tools', tools | tojson(indent=4)) }}{% endif %}
{%- if documents %}
    {%- for document in documents %}
        {{- turn('document ' ~ {'document_id': document.doc_id | string} | tojson, document.text) }}
    {%- endfor %}
{%- endif %}
{%- for message in rest %}{{- turn(message.role, message.content) }}{% endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_of_role|>assistant' }}
    {{- (controls | tojson if controls else '') + '<|end_of_role|>' }}
{%- endif %}
"""

HARMONY = """
{{- '<|start|>system<|message|>Reasoning: ' + (reasoning_effort if reasoning_effort is defined
    else 'medium') + '<|end|>' }}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- if message.tool_calls %}
            {%- if message.thinking %}
                {{- '<|start|>assistant<|channel|>analysis<|message|>' + message.thinking
                    + '<|end|>' }}
            {%- endif %}
            {{- '<|start|>assistant to=functions.' + message.tool_calls[0].function.name
                + '<|message|>' }}
            {{- message.tool_calls[0].function.arguments | tojson }}{{- '<|call|>' }}
        {%- else %}
            {{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}
        {%- endif %}
    {%- else %}
        {{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{% endif %}
"""

FAMILIES = {
    "qwen": QWEN,
    "llama 3": LLAMA_3,
    "mistral": MISTRAL,
    "deepseek": DEEPSEEK,
    "deepseek with a switch": DEEPSEEK_WITH_A_SWITCH,
    "gemma": GEMMA,
    "gemma 3": GEMMA_3,
    "phi": PHI,
    "granite": GRANITE,
    "harmony": HARMONY,
}
