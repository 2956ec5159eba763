"""Writes `graph.pbtxt` for `--pull` and `--configure`; OVMS and `ovms_graph.py` read it.

The graph holds the options of the command line. Defaults of OpenVINO Model Server are left out, but
for the prefix cache, which is on by default on its command line and off in its graphs.
"""

from collections.abc import Iterator, Mapping

import msgspec

import ouzel

Flags = Mapping[str, str]  # flags of OpenVINO Model Server by name

_LLM_GRAPH = """\
# File created with: Ouzel {version}
# OVMS_GRAPH_QUEUE_MAX_SIZE: AUTO
input_stream: "HTTP_REQUEST_PAYLOAD:input"
output_stream: "HTTP_RESPONSE_PAYLOAD:output"
node: {{
  name: "LLMExecutor"
  calculator: "HttpLLMCalculator"
  input_stream: "LOOPBACK:loopback"
  input_stream: "HTTP_REQUEST_PAYLOAD:input"
  input_side_packet: "LLM_NODE_RESOURCES:llm"
  output_stream: "LOOPBACK:loopback"
  output_stream: "HTTP_RESPONSE_PAYLOAD:output"
  input_stream_info: {{
    tag_index: 'LOOPBACK:0',
    back_edge: true
  }}
  node_options: {{
    [type.googleapis.com / mediapipe.LLMCalculatorOptions]: {{
{options}
    }}
  }}
  input_stream_handler {{
    input_stream_handler: "SyncSetInputStreamHandler",
    options {{
      [mediapipe.SyncSetInputStreamHandlerOptions.ext] {{
        sync_set {{
          tag_index: "LOOPBACK:0"
        }}
      }}
    }}
  }}
}}
"""
_VECTOR_GRAPH = """\
# File created with: Ouzel {version}
# OVMS_GRAPH_QUEUE_MAX_SIZE: AUTO
input_stream: "REQUEST_PAYLOAD:input"
output_stream: "RESPONSE_PAYLOAD:output"
node {{
  name: {name}
  calculator: "{calculator}OV"
  input_side_packet: "{side_packet}"
  input_stream: "REQUEST_PAYLOAD:input"
  output_stream: "RESPONSE_PAYLOAD:output"
  node_options: {{
    [type.googleapis.com / mediapipe.{calculator}OVOptions]: {{
{options}
    }}
  }}
}}
"""
_LLM_TEXTS = ("tool_parser", "reasoning_parser")
_LLM_WORDS = (
    *(
        "max_num_seqs",
        "max_num_batched_tokens",
        "cache_size",
        "pipeline_type",
        "dynamic_split_fuse",
    ),
    *("enable_tool_guided_generation", "cache_interval_multiplier", "draft_eagle3_mode"),
)
# Ouzel's words for --pooling, which the flag accepts too.
_OWN_WORDS = {"cls": "CLS", "lasttoken": "LAST", "mean": "MEAN"}
_PLUGIN_PROPERTIES = {  # flags that stand in the graph's plugin_config
    "kv_cache_precision": "KV_CACHE_PRECISION",
    "max_prompt_len": "MAX_PROMPT_LEN",
    "model_distribution_policy": "MODEL_DISTRIBUTION_POLICY",
    "cache_dir": "CACHE_DIR",
    "num_streams": "NUM_STREAMS",
}


def llm_graph_text(flags: Flags, *, models_path: str, draft_models_path: str = "") -> str:
    """Returns the graph of a model that generates text."""
    fields = {
        "models_path": _quoted(models_path),
        **_texts(flags, {"device": "target_device"}),
        **_plugin_config(flags),
        "enable_prefix_caching": flags.get("enable_prefix_caching", "true"),
        **{name: flags[name] for name in _LLM_WORDS if name in flags},
        **_texts(flags, {name: name for name in _LLM_TEXTS}),
    }
    if draft_models_path:
        fields["draft_models_path"] = _quoted(draft_models_path)
    return _LLM_GRAPH.format(version=ouzel.__version__, options=_lines(fields))


def embeddings_graph_text(flags: Flags, *, name: str, models_path: str) -> str:
    """Returns the graph of a model that makes embeddings."""
    fields = {
        "models_path": _quoted(models_path),
        **_words(
            flags,
            {
                "normalize_embeddings": "normalize",
                "truncate": "truncate",
                "max_length": "max_length",
            },
        ),
        **_pooling(flags.get("pooling", "auto")),
        **_texts(flags, {"target_device": "target_device"}),
        **_plugin_config(flags),
    }
    return _vector_graph(
        name, "EmbeddingsCalculator", "EMBEDDINGS_NODE_RESOURCES:embeddings_servable", fields
    )


def rerank_graph_text(flags: Flags, *, name: str, models_path: str) -> str:
    """Returns the graph of a model that scores documents."""
    fields = {
        "models_path": _quoted(models_path),
        **_words(flags, {"max_allowed_chunks": "max_allowed_chunks", "max_length": "max_length"}),
        **_texts(flags, {"target_device": "target_device"}),
        **_plugin_config(flags),
    }
    return _vector_graph(name, "RerankCalculator", "RERANK_NODE_RESOURCES:rerank_servable", fields)


def _vector_graph(name: str, calculator: str, side_packet: str, fields: Mapping[str, str]) -> str:
    return _VECTOR_GRAPH.format(
        version=ouzel.__version__,
        name=_quoted(name),
        calculator=calculator,
        side_packet=side_packet,
        options=_lines(fields),
    )


def _plugin_config(flags: Flags) -> dict[str, str]:
    """Returns `plugin_config` for the graph, from `--plugin_config` and flags of properties."""
    properties = msgspec.json.decode(
        flags.get("plugin_config", "").strip() or "{}", type=dict[str, object]
    )
    for flag, name in _PLUGIN_PROPERTIES.items():
        if flags.get(flag):
            properties.setdefault(name, flags[flag])
    return (
        {"plugin_config": _quoted(msgspec.json.encode(properties).decode())} if properties else {}
    )


def _texts(flags: Flags, format_flag: Mapping[str, str]) -> dict[str, str]:
    return {field: _quoted(flags[flag]) for field, flag in format_flag.items() if flag in flags}


def _words(flags: Flags, format_flag: Mapping[str, str]) -> dict[str, str]:
    return {field: _lowered(flags[flag]) for field, flag in format_flag.items() if flag in flags}


def _lowered(word: str) -> str:
    """Returns TRUE as true: flags may have either spelling, a graph only the second."""
    return word.lower() if word.lower() in ("true", "false") else word


def _pooling(word: str) -> dict[str, str]:
    return {} if word == "auto" else {"pooling": _OWN_WORDS.get(word, word)}


def _lines(fields: Mapping[str, str]) -> str:
    return ",\n".join(_indented(fields))


def _indented(fields: Mapping[str, str]) -> Iterator[str]:
    for name, value in fields.items():
        yield f"      {name}: {value}"


def _quoted(text: str) -> str:
    """Quotes a text for a graph: JSON, which contains double quotes, in single ones."""
    mark = "'" if '"' in text else '"'
    escaped = text.replace("\\", "\\\\").replace(mark, "\\" + mark).replace("\n", "\\n")
    return f"{mark}{escaped}{mark}"
