"""Decides the head of a decoder: most generate tokens, some make vectors."""

from pathlib import Path

from ouzel.backends.openvino.language_model import LanguageModel, VectorHead
from ouzel.backends.openvino.task import find_task, read_architecture, read_num_labels
from ouzel.checkpoint.declared_task import CLASSIFIES
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.config import ModelConfig
from ouzel.errors import ModelLoadError


def vector_size(model: LanguageModel) -> int:
    """Returns the values of a vector, 0 if the model generates tokens."""
    if model.vector_head is None:
        return 0
    return model.vector_head.num_labels or model.hidden_size


def vector_head(config: HfConfig, directory: Path, model: ModelConfig) -> VectorHead | None:
    """Returns the head of a model that makes vectors, None if it generates tokens.

    A reranker that scores by the logits of two tokens (yes and no) generates, too. Raises
    ModelLoadError for options or files that do not go with vectors.
    """
    task = find_task(config, directory, model.task)
    if task in ("generate", "transcribe", "speak") or (
        task == "score" and not read_architecture(config).endswith(CLASSIFIES)
    ):
        return None
    if model.mtp or model.draft_model:
        raise ModelLoadError(f"mtp and draft_model propose tokens: task {task} generates no tokens")
    if task == "score":
        return VectorHead(read_num_labels(config))
    if model.pooling_mode not in (None, "lasttoken"):
        raise ModelLoadError(
            f"--pooling: must be auto or lasttoken for a {config.model_type}, given {model.pooling}"
        )
    files = read_sentence_files(directory, "decoder", pooling=model.pooling_mode)
    if files.interaction is not None:
        raise ModelLoadError(
            f"{directory}: its files name a vector of each token, which only encoders make; a "
            f"{config.model_type} is a decoder"
        )
    if files.modes != ("lasttoken",) or files.dense:
        raise ModelLoadError(
            f"{directory}: the pooling of a {config.model_type} must be lasttoken, without a Dense "
            f"layer; found {', '.join(files.modes)}"
        )
    return VectorHead()
