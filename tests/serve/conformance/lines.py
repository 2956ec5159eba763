"""Lists the rows of docs/reference/conformance.md without a probe.

Each row names the test that covers it, or says why Ouzel does not have the feature.
"""

from dataclasses import dataclass

from ouzel.parsers.registry import FAMILIES
from tests.peer_documents.documents import ROOT

_INTRODUCTION = """
## Other rows

This table has further rows of the documents, and of the pages that they link to. A row that works
names its test; any other row has a reason.

| row | in | in Ouzel | test, or reason |
|---|---|---|---|
"""

PARSERS = [
    "hermes3",
    "llama3",
    "phi4",
    "mistral",
    "devstral",
    "gptoss",
    "qwen3coder",
    "lfm2",
    "gemma4",
    "minicpm5",
]


@dataclass(frozen=True)
class Line:
    row: str
    listed: str
    test: str = ""
    differs: str = ""  # how, and why
    not_here: str = ""  # why

    def cells(self) -> tuple[str, str, str, str]:
        if self.test:
            assert (ROOT / self.test).exists(), f"{self.test} is not there"
            return self.row, self.listed, "works", f"`{self.test}`"
        return (
            self.row,
            self.listed,
            "differs" if self.differs else "not here",
            self.differs or self.not_here,
        )


LINES = (
    Line(
        "examples, snippets, fields of answers, orders of events",
        "A B C D E",
        test="tests/peer_documents",
    ),
    Line(
        "the default of `max_tokens` is the graph's `max_tokens_limit`",
        "A C E",
        test="tests/api/test_max_tokens.py",
    ),
    Line(
        "`num_assistant_tokens` 5 and `max_ngram_size` 3, where a request says neither",
        "A C",
        differs=(
            "as many tokens as pay, from the longest match: answers are the same, and come sooner"
        ),
    ),
    Line(
        "`num_assistant_tokens`, `assistant_confidence_threshold` of generation_config.json",
        "A",
        test="tests/tokenizer/test_model_files.py",
    ),
    Line(
        "`response.created` when the request is accepted, before its first token",
        "E",
        test="tests/api/responses/test_acceptance.py",
    ),
    Line(
        "`response.failed` at an error while generating",
        "E",
        test="tests/api/responses/test_acceptance.py",
    ),
    Line(
        "embeddings and rerank models behind `/invocations`",
        "D",
        test="tests/api/lmi/test_embeddings.py",
    ),
    Line(
        "adapters in `adapters/` of the model directory",
        "D",
        test="tests/serve/test_lmi_adapters.py",
    ),
    Line("graphs of embeddings and rerank models", "A", test="tests/serve/test_ovms_vectors.py"),
    Line(
        "`/v3/rerank` divides long documents into pieces",
        "A",
        test="tests/api/test_long_documents.py",
    ),
    Line(
        "config.json is read again when it changes; `/v1/config/reload`",
        "A",
        test="tests/api/ovms/test_reload.py",
    ),
    Line(
        "unknown keys of config.json are a warning", "A", test="tests/options/test_ovms_config.py"
    ),
    Line("`--pull`, `--configure`", "A", test="tests/options/test_ovms_pull.py"),
    Line(
        "`--add_to_config`, `--remove_from_config`",
        "A",
        test="tests/options/test_ovms_config_edit.py",
    ),
    Line(
        f"parsers by OVMS's names: {', '.join(PARSERS)}", "A", test="tests/parsers/test_registry.py"
    ),
    Line(
        "config.json: `group_name`, `idle_unload_timeout_seconds` (2026.4)",
        "A",
        test="tests/options/test_ovms_config.py",
    ),
    Line(
        "EAGLE-3 drafts (2026.4)",
        "A",
        differs=(
            "heads as safetensors or files of torch are served; a head as OpenVINO IR is left out "
            "with a warning, and the model is served alone: same answers, later"
        ),
    ),
    Line(
        "DFlash drafts (2026.4)",
        "A",
        not_here=(
            "a start with one is refused; a draft changes no answer, and another one takes its "
            "place"
        ),
    ),
    Line(
        "the parser onyx (Muse)",
        "A",
        not_here="there is no public chat template to hold it against",
    ),
    Line(
        "`/v3/audio/transcriptions`, `/v3/audio/translations`",
        "A",
        "tests/api/speech/test_ovms.py",
    ),
    Line(
        "`input_audio` in chats, for models that hear",
        "A E",
        "tests/api/test_hearing.py",
    ),
    Line(
        "`modalities`, `audio`; `/v3/audio/speech`; `pipeline_type: OMNI`",
        "A E",
        not_here="no model that speaks is served",
    ),
    Line(
        "`/v3/images/…`; `--task image_generation`",
        "A",
        not_here="no model that makes pictures is served",
    ),
    Line(
        "KServe's inference: `/v2/models/…/infer`, gRPC",
        "A",
        not_here="it takes tensors; its health paths are here",
    ),
    Line(
        "OpenAI's hosted tools `web_search` and MCP",
        "E",
        test="tests/api/responses",
    ),
    Line(
        "OpenAI's hosted tools `code_interpreter` and `shell`",
        "E",
        test="tests/api/responses/test_code_interpreter.py",
    ),
    Line(
        "OpenAI's hosted tool `file_search`",
        "E",
        test="tests/api/responses/test_file_search.py",
    ),
    Line(
        "LMI's custom handlers (`model.py`)",
        "D",
        not_here=(
            "they are programs for another server's classes, and would run in this server's process"
        ),
    ),
    Line(
        "`s3://` and `djl://` models",
        "D",
        not_here="a directory, a GGUF file or a repo id of the hub is served",
    ),
    Line(
        "sessions, asynchronous pages",
        "D",
        not_here="the prefix cache and background responses take their place",
    ),
    Line(
        "LMI's management API (`POST /models`, workflows)",
        "D",
        differs="models and adapters are loaded by `/v1/models/load` and `/v1/load_lora_adapter`",
    ),
)


def section() -> str:
    names = {name for family in FAMILIES for name in family.names}
    assert set(PARSERS) <= names, "a parser of OVMS has no name here"
    return _INTRODUCTION + "".join(f"| {' | '.join(line.cells())} |\n" for line in LINES)
