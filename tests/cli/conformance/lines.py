"""The rows of docs/conformance.md without a probe: each names the test that sees it, or says why it is not here."""

from pathlib import Path

from tests.peer_documents.documents import ROOT

_INTRODUCTION = """
## Other rows

What else the documents say, or link to. A row names the test that sees it, or the reason why it is not here.

| row | in | here | seen by, or why not |
|---|---|---|---|
"""

LINES = (
    (
        "every example, snippet, field of answers and order of events of the documents",
        "A B C D E",
        "works",
        "tests/peer_documents",
    ),
    (
        "`max_tokens_limit` of the graph is the default of `max_tokens`",
        "A C E",
        "works",
        "tests/api/test_max_tokens.py",
    ),
    (
        "`num_assistant_tokens` 5 and `max_ngram_size` 3, where a request says neither",
        "A C",
        "differs",
        "as many tokens as pay, from the longest match: answers are the same, and come sooner",
    ),
    (
        "`num_assistant_tokens`, `assistant_confidence_threshold` of generation_config.json",
        "A",
        "works",
        "tests/tokenizer/test_model_files.py",
    ),
    ("`response.failed` at an error while generating", "E", "works", "tests/api/responses"),
    ("embeddings and rerank models behind `/invocations`", "D", "works", "tests/api/lmi/test_vectors.py"),
    (
        "`input_audio`, `modalities`, `audio`; `/v3/audio/…`; `pipeline_type: OMNI`",
        "A E",
        "not here",
        "no model that hears or speaks is served",
    ),
    (
        "built-in tools: `web_search`, `file_search`, `code_interpreter`, MCP",
        "E",
        "not here",
        "left out, or a 400 with `--unknown-tools refuse`: the page says that OVMS takes functions alone",
    ),
    ("`/v3/images/…`; `--task image_generation`", "A", "not here", "no model that makes pictures is served"),
    (
        "KServe's API: `/v2/models/…/infer`, gRPC",
        "A",
        "not here",
        "it is about tensors; health and readiness are there",
    ),
    (
        "LMI's custom handlers (`model.py`), `s3://` and `djl://` models, sessions, asynchronous pages",
        "D",
        "not here",
        "code of others in the server's process, and stores of AWS",
    ),
    (
        "LMI's management API (`/models`)",
        "D",
        "differs",
        "models and adapters are loaded by `/v1/models/load` and `/v1/load_lora_adapter`",
    ),
    ("config.json: `group_name` (2026.4)", "A", "differs", "all groups are loaded at the start, with a warning"),
    (
        "EAGLE-3 and DFlash drafts (2026.4)",
        "A",
        "differs",
        "served without the draft, with a warning: answers are the same",
    ),
    ("the parser onyx (Muse)", "A", "not here", "no public chat template to hold it against"),
)


def section() -> str:
    rows = ""
    for row, listed, here, remark in LINES:
        seen_by = remark.startswith("tests/")
        assert not seen_by or (ROOT / Path(remark)).exists(), f"{remark} is not there"
        rows += f"| {row} | {listed} | {here} | {f'`{remark}`' if seen_by else remark} |\n"
    return _INTRODUCTION + rows
