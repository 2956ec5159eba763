"""Writes the section about OVMS's graphs and flags: Ouzel's use of each setting."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouzel.demo import MODEL_DIRECTORY
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_directives import read_directive
from ouzel.options.profiles.ovms_flags import split_ovms_flags
from ouzel.options.profiles.ovms_graph import read_graph
from tests.options.ovms_graphs import write_graph

_GRAPH_INTRODUCTION = """
## Graphs and flags of OVMS

`--profile ovms` reads the fields of `graph.pbtxt`, the fields of its `plugin_config`, and OVMS's
flags. The tables name the option of Ouzel, or one of three results: *logged*, if the field has no
meaning in Ouzel and changes no answer; *logged as a warning*, if answers or the memory may \
differ; *refused*,
if the start ends with the reason.

| field of the graph | in Ouzel | remark |
|---|---|---|
"""

_FLAG_INTRODUCTION = """
| flag | in Ouzel | remark |
|---|---|---|
"""


@dataclass(frozen=True)
class Setting:
    text: str  # the setting in a graph's options, or on a command line
    here: str
    remark: str = ""


GRAPH_FIELDS = (
    Setting("max_num_seqs: 8", "`--max-num-seqs`"),
    Setting("max_num_batched_tokens: 256", "`--max-num-batched-tokens`"),
    Setting("cache_size: 2", "`--kv-cache-gib`"),
    Setting("enable_prefix_caching: true", "`--prefix-caching`"),
    Setting('device: "CPU"', "`--device`"),
    Setting('tool_parser: "hermes3"', "`--tool-parser`"),
    Setting('reasoning_parser: "qwen3"', "`--reasoning-parser`"),
    Setting('response_parser: "hermes3"', "`--tool-parser`", "of 2025"),
    Setting("enable_tool_guided_generation: true", "`--enable-tool-guided-generation`"),
    Setting("max_tokens_limit: 100", "`--max-tokens-limit`"),
    Setting("best_of_limit: 20", "`--max-choices`", "OVMS excludes the limit itself"),
    Setting('draft_models_path: "small"', "`--draft-model`"),
    Setting(
        "pipeline_type: VLM_CB", "read", "one pipeline is all of AUTO, LM, LM_CB, VLM and VLM_CB"
    ),
    Setting("pipeline_type: OMNI", "refused", "no audio"),
    Setting("dynamic_split_fuse: true", "read", "always"),
    Setting(
        "dynamic_split_fuse: false",
        "logged",
        "long prompts are always prefilled in chunks; answers are the same",
    ),
    Setting(
        "draft_eagle3_mode: true",
        "read",
        "the draft is loaded; a draft as OpenVINO IR is left out with a warning",
    ),
    Setting(
        "cache_eviction_config: {}",
        "logged as a warning",
        "all tokens stay in the KV cache, so answers may differ",
    ),
    Setting(
        "sparse_attention_config: {}",
        "logged as a warning",
        "attention reads all tokens, so answers may differ",
    ),
    Setting("chat_template_mode: JINJA", "logged"),
    Setting("block_size: 32", "logged"),
    Setting("cache_interval_multiplier: 2", "logged"),
    Setting("draft_cache_size: 1", "logged"),
    Setting('plugin_config: \'{"KV_CACHE_PRECISION": "u8"}\'', "`--kv-cache-dtype`"),
    Setting(
        'plugin_config: \'{"KV_CACHE_PRECISION": "u4"}\'',
        "`--kv-cache-dtype`, logged as a warning",
        "u8 instead: more exact, with twice the memory",
    ),
    Setting('plugin_config: \'{"CACHE_DIR": "/c"}\'', "`--cache-dir`"),
    Setting("plugin_config: '{\"INFERENCE_NUM_THREADS\": 2}'", "`--num-threads`"),
    Setting('plugin_config: \'{"INFERENCE_PRECISION_HINT": "f32"}\'', "`--precision`"),
    Setting("plugin_config: '{\"prompt_lookup\": true}'", "`--prompt-lookup`"),
    Setting("plugin_config: '{\"NUM_STREAMS\": 1}'", "logged"),
    Setting(
        "plugin_config: '{\"NUM_STRAEMS\": 1}'",
        "refused",
        "OpenVINO refuses a property that it does not know, too",
    ),
)
FLAGS = (
    Setting("--rest_port 8123", "`--port`"),
    Setting("--model_path m", "MODEL"),
    Setting("--model_name llama3", "`--served-model-name`"),
    Setting("--task text_generation", "`--task`"),
    Setting("--task embeddings", "`--task`"),
    Setting("--task rerank", "`--task`"),
    Setting("--task image_generation", "refused", "no pictures are made here"),
    Setting("--task text2speech", "`--task`"),
    Setting("--task speech2text", "`--task`"),
    Setting("--pooling LAST", "`--pooling`"),
    Setting("--normalize true", "`--normalize`"),
    Setting("--truncate true", "`--truncate`"),
    Setting("--max_allowed_chunks 100", "`--max-document-chunks`"),
    Setting("--max_length 64", "`--max-model-len`"),
    Setting("--num_streams 2", "logged"),
    Setting("--disable_input_count_validation", "logged"),
    Setting("--gguf_filename m.gguf --source_model owner/name", "MODEL, `--served-model-name`"),
    Setting(
        "--source_loras a=./DIRECTORY",
        "`--lora`",
        "an adapter of the hub is pulled beside its model",
    ),
    Setting(
        "--pull --source_model owner/name --model_repository_path models",
        "done instead of serving",
        "the model is downloaded, and its graph written",
    ),
    Setting("--configure --model_path ./MODEL", "done instead of serving", "the graph is written"),
    Setting(
        "--add_to_config --config_path c.json --model_name a --model_path ./DIRECTORY",
        "done instead of serving",
    ),
    Setting("--remove_from_config --config_path c.json --model_name a", "done instead of serving"),
    Setting("--verbose_response", "`--verbose-response`"),
    Setting(
        "--extra_quantization_params x",
        "refused",
        "`--weight-format` and `ouzel quantize` say how weights are compressed",
    ),
)
NAMES_OF_OPTIONS = {"model": "MODEL"}


@dataclass(frozen=True)
class Outcome:
    """Returns the options that Ouzel reads from a graph or from a command line."""

    options: dict[str, object]
    logged: Sequence[str] = ()
    warnings: Sequence[str] = ()
    ends: bool = False  # once the flag's work is done, instead of serving


def read_graph_field(setting: Setting, directory: Path) -> str:
    def read(text: str) -> Outcome:
        path = directory / "graph.pbtxt"
        path.write_text(write_graph(text))
        settings = read_graph(path)
        return Outcome(dict(settings.values), settings.without_meaning, settings.warnings)

    return _describe(read, 'models_path: "./"', f'models_path: "./" {setting.text}')


def read_flag(setting: Setting, directory: Path) -> str:
    (directory / "adapter_model.safetensors").touch()

    def read(text: str) -> Outcome:
        text = text.replace("./DIRECTORY", str(directory)).replace("./MODEL", str(MODEL_DIRECTORY))
        flags = split_ovms_flags(text.split(), {})
        logged = [remark for remark in flags.remarks if "no meaning" in remark]
        warnings = [remark for remark in flags.remarks if remark not in logged]
        directive = None if flags.wish is None else read_directive(flags.wish)
        is_all = directive is not None and directive.is_all
        return Outcome(dict(flags.values), logged, warnings, is_all)

    return _describe(read, "", setting.text)


def _describe(read: Callable[[str], Outcome], without: str, text: str) -> str:
    """Compares the outcome with the outcome of a graph or a command line without the setting."""
    before = read(without).options
    try:
        outcome = read(text)
    except InvalidOption:
        return "refused"
    if outcome.ends:
        return "done instead of serving"
    options = [name for name, value in outcome.options.items() if before.get(name, ...) != value]
    named = [NAMES_OF_OPTIONS.get(name, f"`--{name.replace('_', '-')}`") for name in options]
    notes = ["logged"] * bool(outcome.logged) + ["logged as a warning"] * bool(outcome.warnings)
    return ", ".join(named + notes) or "read"


def section(directory: Path) -> str:
    text = _GRAPH_INTRODUCTION + _rows(GRAPH_FIELDS, read_graph_field, directory)
    return text + _FLAG_INTRODUCTION + _rows(FLAGS, read_flag, directory)


def _rows(
    settings: Sequence[Setting], read: Callable[[Setting, Path], str], directory: Path
) -> str:
    rows = ""
    for setting in settings:
        here = read(setting, directory)
        assert here == setting.here, f"{setting.text}: {here}, not {setting.here}"
        rows += f"| `{setting.text}` | {here} | {setting.remark} |\n"
    return rows
