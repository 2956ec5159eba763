"""Describes served models in the form of Codex's catalogue of models.

Codex asks a provider's /models with its version as `client_version`, or reads the same form from
the file of its option `model_catalog_json`. The fields without a default value are the fields that
Codex 0.171 requires.
"""

import msgspec

from ouzel.generation import ServedModel

_MAX_OUTPUT_SHARE = 8  # the output of one command fills at most this part of the context
_MAX_OUTPUT_TOKENS = 10_000  # Codex's own limit
_EFFORTS = {
    "none": "Answers without reasoning",
    "low": "Reasons briefly",
    "medium": "Reasons",
    "high": "Reasons at length",
}
# Codex shows these instructions to a model of a catalogue in place of its own, which are about
# 20,000 characters long.
_INSTRUCTIONS = """\
You are a coding agent in Codex, a program in the user's terminal. You work in the user's \
directory with the tools of this conversation, until the task is done.

# Work
- Read the files that matter before you change them. Search with `rg`, or with `grep -rn`.
- Keep each change as small as the task allows, in the style of the surrounding code. Never undo \
changes of the user.
- To change or create a file, run `apply_patch` with a patch in a here-document, or write the file \
with a here-document of the shell.
- Run the tests or the program to see that the change works. Read errors, and correct their cause.
- Obey the instructions of AGENTS.md files in the directory.
- Delete nothing, commit nothing and download nothing unless the user asks for it.
- A command may be refused or need an approval. Then choose another way, or say \
which permission is missing.

# A patch
*** Begin Patch
*** Update File: path/of/the/file
@@ the function or class around the change
 an unchanged line
-a removed line
+an added line
*** End Patch
`*** Add File: path` is followed by lines with `+`; `*** Delete File: path` stands alone.

# Answers
Answer questions directly. After a change, describe the change and your tests in a few \
sentences. Name files by their paths. Never claim a test that you did not run.
"""


class ReasoningLevel(msgspec.Struct):
    effort: str
    description: str


class TruncationPolicy(msgspec.Struct):
    limit: int
    mode: str = "tokens"


class CodexModel(msgspec.Struct, kw_only=True):
    slug: str
    display_name: str
    supported_reasoning_levels: list[ReasoningLevel]
    priority: int  # Codex lists the lowest number first
    context_window: int
    truncation_policy: TruncationPolicy  # limits the output of each command
    input_modalities: list[str]
    default_reasoning_level: str | None = None
    base_instructions: str = _INSTRUCTIONS
    shell_type: str = "shell_command"
    visibility: str = "list"
    supported_in_api: bool = True
    support_verbosity: bool = False
    supports_parallel_tool_calls: bool = True
    supports_reasoning_summaries: bool = False  # required by versions before 0.150
    experimental_supported_tools: list[str] = []


def codex_model(name: str, model: ServedModel, priority: int) -> CodexModel:
    context = model.engine.info.max_model_len
    reasons = model.output_format.reasoning is not None
    efforts = model.renderer.reasoning_efforts if reasons else ()
    return CodexModel(
        slug=name,
        display_name=name,
        supported_reasoning_levels=[ReasoningLevel(effort, _EFFORTS[effort]) for effort in efforts],
        default_reasoning_level="medium" if efforts else None,
        priority=priority,
        context_window=context,
        truncation_policy=TruncationPolicy(min(_MAX_OUTPUT_TOKENS, context // _MAX_OUTPUT_SHARE)),
        input_modalities=["text", "image"] if model.renderer.supports_images else ["text"],
    )
