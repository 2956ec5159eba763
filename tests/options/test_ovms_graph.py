"""graph.pbtxt is read in the forms that OVMS's programs and its users write."""

import shutil
from pathlib import Path

import pytest

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.profiles.ovms_calculators import CALCULATORS
from ouzel.options.profiles.ovms_graph import NotALanguageModel, read_graph
from ouzel.options.profiles.ovms_meanings import Settings
from tests.backends.test_openvino_sentences import GOLDEN
from tests.options.ovms_graphs import write_graph, write_vectors_graph

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "ovms.md"

SHORT = """\
input_stream: "HTTP_REQUEST_PAYLOAD:input" output_stream: "HTTP_RESPONSE_PAYLOAD:output"
node {
 name: "LLMExecutor" calculator: "HttpLLMCalculator"
 input_stream_info { tag_index: "LOOPBACK:0" back_edge: true }
 node_options { [type.googleapis.com/mediapipe.LLMCalculatorOptions] {
 models_path: "/models/x"
 device: "GPU.1"
 max_num_seqs: 1
 enable_prefix_caching: false
 } }
}"""
OF_2024 = """\
node: {
  calculator: "LLMCalculator"
  options: { [mediapipe.LLMCalculatorOptions.ext] { models_path: "./" block_size: 32 } }
}"""
IMAGES = """\
node: { name: "ImageGenExecutor" calculator: "ImageGenCalculator" node_options: {
  [type.googleapis.com / mediapipe.ImageGenCalculatorOptions]: { models_path: "./" } } }"""
OF_TWO_MODELS = """\
node { calculator: "OpenVINOModelServerSessionCalculator"
  output_side_packet: "SESSION:tokenizer" }
node { calculator: "OpenVINOModelServerSessionCalculator"
  output_side_packet: "SESSION:embeddings" }
node { calculator: "EmbeddingsCalculator" node_options: {
  [type.googleapis.com / mediapipe.EmbeddingsCalculatorOptions]: {
    normalize_embeddings: true } } }"""


def read(directory: Path, text: str) -> Settings:
    path = directory / "graph.pbtxt"
    path.write_text(text)
    return read_graph(path)


def read_options(directory: Path, options: str) -> Settings:
    return read(directory, write_graph(options))


def test_a_graph_of_the_command_line_of_ovms_is_read(tmp_path: Path) -> None:
    settings = read_options(
        tmp_path,
        """max_num_seqs:256,
            device: "CPU",
            models_path: "./",
            plugin_config: '{"KV_CACHE_PRECISION":"u8","CACHE_DIR":"/c",'
                '"MODEL_DISTRIBUTION_POLICY":"TENSOR_PARALLEL"}',
            enable_prefix_caching: true,
            cache_size: 10,
            pipeline_type: LM_CB,
            max_num_batched_tokens: 4096,
            tool_parser: "hermes3",
            reasoning_parser: "qwen3",
            enable_tool_guided_generation: true,
            # Speculative decoding configuration
            draft_models_path: "OpenVINO-small",""",
    )

    assert settings.values == {
        "max_num_seqs": "256",
        "device": "CPU",
        "model": str(tmp_path),
        "kv_cache_dtype": "u8",
        "cache_dir": "/c",
        "prefix_caching": "true",
        "kv_cache_gib": "10",
        "max_num_batched_tokens": "4096",
        "tool_parser": "hermes3",
        "reasoning_parser": "qwen3",
        "enable_tool_guided_generation": "true",
        "draft_model": str(tmp_path / "OpenVINO-small"),
    }
    assert settings.without_meaning == ["plugin_config MODEL_DISTRIBUTION_POLICY"]


def test_a_graph_in_other_spellings(tmp_path: Path) -> None:
    assert read(tmp_path, SHORT).values == {
        "model": "/models/x",
        "device": "GPU.1",
        "max_num_seqs": "1",
        "prefix_caching": "false",
    }
    old = read(tmp_path, OF_2024)
    assert (old.values, old.without_meaning) == ({"model": str(tmp_path)}, ["block_size"])


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ('models_path: "../x"', "model", "{parent}/x"),
        ('models_path: "x.gguf"', "model", "{here}/x.gguf"),
        ("cache_size: 0", "kv_cache_gib", None),
        ("max_tokens_limit: 100", "max_tokens_limit", "100"),
        ("best_of_limit: 20", "max_choices", 19),
        ("enable_prefix_caching: 1", "prefix_caching", "true"),
        ("plugin_config: ''", "kv_cache_dtype", None),
        ('plugin_config: "{ }"', "kv_cache_dtype", None),
        ("""plugin_config: '{"prompt_lookup": true}'""", "prompt_lookup", "true"),
        ("""plugin_config: '{"INFERENCE_NUM_THREADS": 4}'""", "num_threads", "4"),
        ("""plugin_config: '{"INFERENCE_PRECISION_HINT": "f32"}'""", "precision", "f32"),
        (
            "dynamic_split_fuse: true pipeline_type: VLM_CB draft_eagle3_mode: false",
            "model",
            "{here}",
        ),
        (
            'models_path: "./" draft_models_path: "small" draft_eagle3_mode: false',
            "draft_model",
            "{here}/small",
        ),
        (
            'models_path: "./" draft_models_path: "eagle" draft_eagle3_mode: true',
            "draft_model",
            "{here}/eagle",
        ),
    ],
)
def test_a_field_is_an_option_of_ours(
    tmp_path: Path, options: str, name: str, value: object
) -> None:
    settings = read_options(
        tmp_path, options if "models_path" in options else f'models_path: "./" {options}'
    )

    wanted = (
        value.format(here=tmp_path, parent=tmp_path.parent) if isinstance(value, str) else value
    )
    assert settings.values.get(name) == wanted
    assert (settings.without_meaning, settings.warnings) == ([], [])


@pytest.mark.parametrize(
    ("options", "values", "warning"),
    [
        (
            "cache_eviction_config: { start_size: 32 }",
            {},
            "cache_eviction_config: no token is removed",
        ),
        (
            "sparse_attention_config { mode: XATTENTION }",
            {},
            "sparse_attention_config: attention reads all tokens",
        ),
        (
            """plugin_config: '{"KV_CACHE_PRECISION": "u4"}'""",
            {"kv_cache_dtype": "u8"},
            "plugin_config KV_CACHE_PRECISION u4: the KV cache is u8 here",
        ),
    ],
)
def test_an_approximation_is_left_out_with_a_warning(
    tmp_path: Path, options: str, values: dict[str, str], warning: str
) -> None:
    settings = read_options(tmp_path, f'models_path: "./" {options}')

    assert settings.values == {"model": str(tmp_path), **values}
    assert [sentence.startswith(warning) for sentence in settings.warnings] == [True]


def test_an_eagle_draft_as_openvino_ir_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "eagle").mkdir()
    (tmp_path / "eagle" / "openvino_model.xml").write_text("")
    fields = 'models_path: "./" draft_eagle3_mode: true draft_models_path: "eagle"'

    settings = read_options(tmp_path, fields)

    assert settings.values == {"model": str(tmp_path)}
    [warning] = settings.warnings
    assert warning.startswith(f"draft_eagle3_mode: {tmp_path}/eagle is an OpenVINO IR, whose")


@pytest.mark.parametrize(
    "options",
    [
        "cache_interval_multiplier: 8",
        "chat_template_mode: MINJA",
        'draft_device: "GPU"',
        "draft_cache_size: 2",
        "dynamic_split_fuse: false",
        """plugin_config: '{"NUM_STREAMS": 1}'""",
        """plugin_config: '{"KEY_CACHE_PRECISION": "u8"}'""",
        """plugin_config: '{"GPU_ENABLE_SDPA_OPTIMIZATION": true}'""",
        """plugin_config: '{"NPUW_DEVICES": "NPU"}'""",
    ],
)
def test_a_field_that_changes_no_answer_is_named(tmp_path: Path, options: str) -> None:
    settings = read_options(tmp_path, f'models_path: "./" {options}')

    assert len(settings.without_meaning) == 1
    assert settings.values == {"model": str(tmp_path)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "graph.pbtxt: models_path: must be given"),
        ("models_path: 7", "models_path: must be a text in quotation marks, given '7'"),
        ('max_num_seqs: "8"', "max_num_seqs: must be a whole number, given '8'"),
        ("max_num_seqs: -8", "max_num_seqs: must be a whole number, given '-8'"),
        ("max_num_seqs: 8 max_num_seqs: 9", "max_num_seqs: must be given once, given 2 times"),
        ("enable_prefix_caching: yes", "enable_prefix_caching: must be true or false, given 'yes'"),
        (
            'pipeline_type: "LM"',
            "pipeline_type: must be a name without quotation marks, given 'LM'",
        ),
        ("pipeline_type: OMNI", "pipeline_type: there is one pipeline, .*, given 'OMNI'"),
        (
            "max_num_sequences: 8",
            "LLMCalculatorOptions has no field max_num_sequences; did you mean max_num_seqs",
        ),
        (
            "sparse_attention_config: true",
            "sparse_attention_config: must be a message in braces, given 'true'",
        ),
        (
            'generation_config_path: "g.json"',
            "generation_config_path: the model's own .*, given 'g.json'",
        ),
        (
            """plugin_config: '{"KV_CACHE_PRECISON": "u8"}'""",
            "unknown property KV_CACHE_PRECISON; did you mean KV_CACHE_",
        ),
        ("best_of_limit: 1", "best_of_limit: must be >= 2, .*, given 1"),
        ("plugin_config: '[1]'", r"plugin_config: must be a JSON object, given '\[1\]'"),
        ("max_num_seqs { }", "max_num_seqs: must be a whole number, given a message"),
        ("max_num_seqs: @", "line .*'@.* cannot be read"),
    ],
)
def test_a_field_that_would_change_answers_or_is_wrong_is_refused_by_name(
    tmp_path: Path, options: str, message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        read_options(tmp_path, options)


def test_properties_that_are_nested_too_deep_are_refused(tmp_path: Path) -> None:
    nested = '{"a":' * 5000 + "1" + "}" * 5000
    with pytest.raises(InvalidOption, match="plugin_config: must be a JSON object"):
        read_options(tmp_path, f"plugin_config: '{nested}'")


def test_a_graph_of_embeddings(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        write_vectors_graph(
            "Embeddings",
            """models_path: "./",
            normalize_embeddings: false,
            truncate: true,
            pooling: LAST,
            target_device: "CPU",
            plugin_config: '{"NUM_STREAMS":1,"CACHE_DIR":"/c"}',
            max_length: 32
            max_batch_size: 2""",
        ),
    )

    assert settings.values == {
        "task": "embed",
        "model": str(tmp_path),
        "normalize": "false",
        "truncate": "true",
        "pooling": "lasttoken",
        "device": "CPU",
        "cache_dir": "/c",
        "max_model_len": "32",
    }
    assert settings.without_meaning == ["plugin_config NUM_STREAMS", "max_batch_size"]


@pytest.mark.parametrize(
    ("options", "pooling"),
    [
        ("pooling: CLS", "cls"),
        ("pooling: MEAN", "mean"),
        ("pooling: LAST_TOKEN", "lasttoken"),
        ("mean_pooling: true", "mean"),
        ("mean_pooling: false", "cls"),
    ],
)
def test_names_of_poolings_of_all_releases(tmp_path: Path, options: str, pooling: str) -> None:
    settings = read(tmp_path, write_vectors_graph("Embeddings", f'models_path: "./" {options}'))

    assert settings.values["pooling"] == pooling


@pytest.mark.parametrize(
    ("model", "left_out", "pooling"),
    [
        ("bge", [], None),
        ("bge", ["modules.json"], None),  # 1_Pooling/config.json is left
        ("bge", ["modules.json", "1_Pooling"], "cls"),
        ("qwen3-embedding", ["modules.json", "1_Pooling"], None),
    ],
)
def test_the_pooling_is_cls_where_neither_the_graph_nor_an_encoder_names_one(
    tmp_path: Path, model: str, left_out: list[str], pooling: str | None
) -> None:
    shutil.copytree(GOLDEN / model, tmp_path, ignore=lambda *_: left_out, dirs_exist_ok=True)
    settings = read(tmp_path, write_vectors_graph("Embeddings", 'models_path: "./"'))

    assert settings.values.get("pooling") == pooling
    assert settings.values["normalize"] == "true"
    assert bool(settings.warnings) == bool(pooling)


@pytest.mark.parametrize("length", ["max_length", "max_position_embeddings"])
def test_a_graph_of_a_reranker(tmp_path: Path, length: str) -> None:
    options = f'models_path: "./", max_allowed_chunks: 4, target_device: "GPU", {length}: 12'
    settings = read(tmp_path, write_vectors_graph("Rerank", options))

    assert settings.values == {
        "task": "score",
        "model": str(tmp_path),
        "max_document_chunks": "4",
        "device": "GPU",
        "max_model_len": "12",
    }


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (write_vectors_graph("Embeddings", "pooling: CLS"), "models_path: must be given"),
        (
            write_vectors_graph("Embeddings", 'models_path: "./" pooling: MAX'),
            "pooling: must be CLS, LAST or MEAN, given",
        ),
        (
            write_vectors_graph("Embeddings", 'models_path: "./" normalize: true'),
            "EmbeddingsCalculatorOVOptions has no field normalize",
        ),
        (
            write_vectors_graph("Rerank", 'models_path: "./" pooling: CLS'),
            "OVOptions has no field pooling",
        ),
        (
            write_graph('models_path: "./"') + write_vectors_graph("Rerank", ""),
            "node: exactly one must be a model, given 2",
        ),
    ],
)
def test_a_wrong_graph_of_vectors_is_refused(tmp_path: Path, graph: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        read(tmp_path, graph)


def test_a_graph_of_another_task_is_refused_by_its_calculator(tmp_path: Path) -> None:
    with pytest.raises(NotALanguageModel, match=r"its graph has ImageGenCalculator$"):
        read(tmp_path, IMAGES)
    with pytest.raises(
        NotALanguageModel,
        match="export the checkpoint again for EmbeddingsCalculatorOV, or make its",
    ):
        read(tmp_path, OF_TWO_MODELS)


def test_a_graph_without_options_or_with_two_models_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidOption,
        match=r"node_options: must hold mediapipe\.LLMCalculatorOptions once, given 0",
    ):
        read(tmp_path, 'node { calculator: "HttpLLMCalculator" }')
    with pytest.raises(InvalidOption, match="node: exactly one must be a model, given 2"):
        read(tmp_path, write_graph('models_path: "./"') * 2)


def test_the_document_names_every_field() -> None:
    section = DOCUMENT.read_text().split("## graph.pbtxt")[1].split("\n## ")[0]
    fields = {name for calculator in CALCULATORS.values() for name in calculator.fields}
    assert {name for name in fields if f"`{name}`" not in section} == set()
