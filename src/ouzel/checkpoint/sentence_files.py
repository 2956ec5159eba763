"""Reads the sentence-transformers files of a checkpoint, which describe its vectors.

`modules.json` lists the modules in their order: the transformer, a pooling, perhaps Dense layers
and a Normalize. Each has a directory with a config.json. `sentence_bert_config.json` limits the
length of a text; `config_sentence_transformers.json` holds prompts. Without `modules.json` the
pooling is the one of `1_Pooling/config.json`, which conversions keep, or else the default of
sentence-transformers: the mean of all tokens. In a decoder only the last token has read all the
others, so the vector of the last token counts, with length 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ouzel.checkpoint.activations import Activation
from ouzel.checkpoint.dense_file import TORCH_ACTIVATIONS, DenseFile, read_dense_file
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.late_interaction import VECTOR_HEAD, LateInteraction, read_late_interaction
from ouzel.checkpoint.model_files import (
    CONFIG_FILE,
    JsonObject,
    brief,
    read_config_json,
    read_json_object,
)
from ouzel.checkpoint.sentence_chats import SentenceChats, read_sentence_chats, refuse_beside_chats
from ouzel.checkpoint.text_tasks import (
    NO_PROMPT,
    TextPrompt,
    read_task_instructions,
    read_text_tasks,
)
from ouzel.errors import ModelLoadError

PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
ModelKind = Literal["encoder", "decoder"]

_MODES: tuple[str, ...] = get_args(PoolingMode)
_OLDER_MODES = {  # older sentence-transformers wrote a flag for each mode
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# The names of the prompts in sentence-transformers.
_QUERY_PROMPTS = ("query", "retrieval.query")
_DOCUMENT_PROMPTS = ("document", "passage", "corpus", "retrieval.passage")
_MAX_SIZE = 2**18
_MODULES = "modules.json"
_POOLING = "1_Pooling"
_CONFIG = "config_sentence_transformers.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFiles:
    # The vectors of several modes are concatenated; empty: the model makes only vectors of tokens.
    modes: tuple[PoolingMode, ...]
    dense: tuple[DenseFile, ...] = ()
    normalises: bool = False
    # The tokens "yes" and "no", of whose logits a decoder's score is made.
    answer_ids: tuple[int, int] | None = None
    max_tokens: int | None = None  # the longest text
    lowers_case: bool = False  # texts are tokenized in lower case
    prompts: Mapping[str, str] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()  # tasks of which the model has adapters, in their order
    # the prompt of texts whose request names no prompt
    default_prompt: TextPrompt = NO_PROMPT
    is_matryoshka: bool = False  # a vector may be cut after its first values
    # The activation of scores; None: sigmoid for a single score, none for several.
    activation: Activation | None = None
    interaction: LateInteraction | None = None  # how texts are compared by the vectors of tokens
    chats: SentenceChats | None = None  # texts are written as chats; None: they are plain

    @property
    def makes_whole_vectors(self) -> bool:
        """Tells whether the model makes a vector of a whole text."""
        return bool(self.modes)

    @property
    def query_prompt(self) -> TextPrompt:
        """Returns the prompt of a search query."""
        named = [name for name in _QUERY_PROMPTS if name in self.prompts]
        return self.named_prompt(named[0]) if named else self.default_prompt

    @property
    def document_prompt(self) -> TextPrompt:
        """Returns the prompt of a document.

        An empty prompt counts as missing: sentence-transformers writes it if nobody chose one.
        """
        named = [self.named_prompt(name) for name in _DOCUMENT_PROMPTS if name in self.prompts]
        missing = NO_PROMPT if named else self.default_prompt
        return next((prompt for prompt in named if prompt.text or prompt.task), missing)

    def named_prompt(self, name: str) -> TextPrompt:
        """Returns a prompt; the task of the same name belongs to it."""
        return TextPrompt(self.prompts[name], self.find_task(name))

    def find_task(self, name: str) -> int:
        """Returns the number of a task, 0 if the model has no adapter for it."""
        return self.tasks.index(name) + 1 if name in self.tasks else 0


def read_sentence_files(
    directory: Path, kind: ModelKind, *, pooling: PoolingMode | None = None
) -> SentenceFiles:
    """Reads the files; `pooling` replaces the pooling in them.

    Raises ModelLoadError, which names the wrong file.
    """
    config, own = read_config_json(directory), read_json_object(directory / _CONFIG)
    modules = _modules(directory)
    read = _read_modules(directory, modules) if modules else _without_modules(directory, kind)
    reading_path = _find_length_file(directory, modules)
    reading = read_json_object(reading_path)
    interaction = read_late_interaction(directory, config, modules, reading)
    has_own_length = interaction is not None and interaction.document_len is not None
    prompts = read_task_instructions(config) | _prompts(directory, own)
    default = own.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise ModelLoadError(
            f"{directory / _CONFIG}: default_prompt_name {brief(default)} must be among its prompts"
        )
    files = SentenceFiles(
        modes=_choose_modes(read.modes, pooling, interaction),
        dense=read.dense,
        normalises=read.normalises,
        answer_ids=read.answer_ids,
        # The files of late interaction have lengths of their own; the others keep a chance value.
        max_tokens=None if has_own_length else _max_tokens(directory, reading),
        lowers_case=bool(reading.get("do_lower_case")),
        prompts=prompts,
        tasks=read_text_tasks(config),
        is_matryoshka=bool(config.get("is_matryoshka") or config.get("matryoshka_dimensions")),
        activation=_score_activation(config, own),
        interaction=interaction,
        chats=read_sentence_chats(directory, HfConfig(reading, str(reading_path))),
    )
    if files.chats is not None:
        refuse_beside_chats(
            reading_path,
            {"do_lower_case": files.lowers_case, "late interaction": interaction is not None},
        )
    if default is None:
        return files
    return replace(files, default_prompt=files.named_prompt(str(default)))


def _choose_modes(
    modes: tuple[PoolingMode, ...],
    option: PoolingMode | None,
    interaction: LateInteraction | None,
) -> tuple[PoolingMode, ...]:
    if interaction is None or interaction.head == VECTOR_HEAD:
        return (option,) if option else modes
    if option:
        raise ModelLoadError(
            f"--pooling: must be auto for a model that makes a vector of each token, given {option}"
        )
    return ()


def _modules(directory: Path) -> list[JsonObject]:
    path = directory / _MODULES
    if not path.is_file():
        return []
    # read_json_object takes objects only.
    from msgspec import DecodeError, json  # noqa: PLC0415

    try:
        return json.decode(path.read_bytes(), type=list[dict[str, object]])
    except (OSError, DecodeError, RecursionError) as error:
        raise ModelLoadError(f"{path} cannot be read: {error}") from error


def names_pooling(directory: Path) -> bool:
    """Tells whether the files of the model name the pooling of its vectors."""
    return (directory / _MODULES).is_file() or (directory / _POOLING / CONFIG_FILE).is_file()


def _without_modules(directory: Path, kind: ModelKind) -> SentenceFiles:
    path = directory / _POOLING / CONFIG_FILE
    if kind == "decoder":
        return SentenceFiles(modes=("lasttoken",), normalises=True)
    return SentenceFiles(modes=_pooling_modes(path) if path.is_file() else ("mean",))


def _read_modules(directory: Path, modules: list[JsonObject]) -> SentenceFiles:
    modes: tuple[PoolingMode, ...] = ()
    dense: list[DenseFile] = []
    answer_ids = None
    normalises = False
    for module in modules:
        kind = str(module.get("type", "")).rpartition(".")[2]
        path = directory / str(module.get("path", ""))
        if not path.resolve().is_relative_to(directory.resolve()):
            raise ModelLoadError(
                f"{directory / _MODULES}: {brief(module.get('path'))} must be below the model's "
                "directory"
            )
        match kind:
            case "Transformer" | "MultiVectorMask":
                continue
            case "LogitScore":
                answer_ids = _answer_ids(path / CONFIG_FILE)
            case "Pooling":
                modes = _pooling_modes(path / CONFIG_FILE)
            case "Dense" if not normalises:
                dense.append(read_dense_file(path))
            case "Normalize":
                normalises = True
            case _:
                raise ModelLoadError(
                    f"{directory / _MODULES}: a module {brief(module.get('type'))} is not supported"
                )
    return SentenceFiles(
        modes=modes or ("mean",), dense=tuple(dense), normalises=normalises, answer_ids=answer_ids
    )


def _answer_ids(path: Path) -> tuple[int, int]:
    config = read_json_object(path)
    yes, no = (config.get(f"{answer}_token_id") for answer in ("true", "false"))
    if not isinstance(yes, int) or not isinstance(no, int):
        raise ModelLoadError(
            f"{path}: true_token_id and false_token_id must be tokens, "
            f"found {brief(yes)}, {brief(no)}"
        )
    return yes, no


def _pooling_modes(path: Path) -> tuple[PoolingMode, ...]:
    config = read_json_object(path)
    if config.get("include_prompt") is False:
        raise ModelLoadError(
            f"{path}: include_prompt false is not supported: prompts count like other tokens"
        )
    named = config.get("pooling_mode")
    modes = named if isinstance(named, list) else [named] if named is not None else None
    if modes is None:
        modes = [mode for key, mode in _OLDER_MODES.items() if config.get(key)] or ["mean"]
    if unknown := [mode for mode in modes if mode not in _MODES]:
        raise ModelLoadError(
            f"{path}: pooling_mode {brief(unknown[0])} is not supported; "
            f"supported: {', '.join(_MODES)}"
        )
    return cast(tuple[PoolingMode, ...], tuple(modes))


def _find_length_file(directory: Path, modules: list[JsonObject]) -> Path:
    """Returns `sentence_bert_config.json` of the transformer module, with the length of texts."""
    path = ""
    for module in modules:
        if str(module.get("type", "")).endswith("Transformer"):
            path = str(module.get("path", ""))
            break
    return directory / path / "sentence_bert_config.json"


def _max_tokens(directory: Path, reading: JsonObject) -> int | None:
    """Returns the longest text in tokens, by the sentence file or the tokenizer's limit.

    transformers writes 1e30 for no limit.
    """
    tokenizer = read_json_object(directory / "tokenizer_config.json")
    value = reading.get("max_seq_length") or tokenizer.get("model_max_length")
    return value if isinstance(value, int) and 0 < value <= _MAX_SIZE else None


def _prompts(directory: Path, own: JsonObject) -> dict[str, str]:
    prompts: Any = own.get("prompts") or {}  # Any: JSON
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise ModelLoadError(f"{directory / _CONFIG}: prompts must be texts by name")
    return prompts


def _score_activation(config: JsonObject, own: JsonObject) -> Activation | None:
    nested = config.get("sentence_transformers")
    named = own.get("activation_fn") or (
        nested.get("activation_fn") if isinstance(nested, dict) else None
    )
    named = named or config.get("sbert_ce_default_activation_function")
    if named is None:
        return None
    name = str(named).rpartition(".")[2]
    if name not in TORCH_ACTIVATIONS:
        raise ModelLoadError(
            f"config.json: the scores' activation_fn {brief(named)} is not supported"
        )
    return TORCH_ACTIVATIONS[name]
