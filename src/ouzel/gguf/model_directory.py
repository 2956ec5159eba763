"""Makes a model directory from a GGUF model: links to the GGUF files and the small files of a
Hugging Face repository. A chat template beside the file is linked, too, and goes before the file's.

A model with an mmproj file, which has its vision encoder, becomes the directory of a model that
sees. The directory is stored and reused. It is made again if a GGUF file has another path, size or
time of change, if a chat template beside it has come or gone, or if FORMAT has changed.
"""

import hashlib
import logging
from pathlib import Path

from ouzel.checkpoint.made_directory import SmallFile, mark_used, matches_source, store_directory
from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import Gguf, read_gguf
from ouzel.gguf.files import AUTO, PROJECTOR, find_chat_template, find_gguf, model_name
from ouzel.gguf.pooling import make_sentence_files
from ouzel.gguf.projector_choice import choose_projector
from ouzel.gguf.seeing import make_seeing_files
from ouzel.gguf.tokenizer import make_tokenizer_files

logger = logging.getLogger(__name__)

FORMAT = 4  # increase it when other files are made from the same metadata

_EMBEDDING, _TOKENS = "token_embd.weight", "tokenizer.ggml.tokens"
_MOST_TOKENS_BY_ROW = 2  # known files have one token per row, and a few more


def model_directory(
    path: Path, cache_root: Path, mmproj: str = AUTO, repository: Path | None = None
) -> Path:
    """Returns the directory for a GGUF file, or for a directory with the files of one model.

    `mmproj` names the file of the vision encoder, which may be in the directory `repository`, too
    (projector_choice.py). Raises ModelLoadError.
    """
    files = [file.absolute() for file in find_gguf(path)]
    found = choose_projector(mmproj, files[0], lambda: read_gguf(files), repository)
    projector = None if found is None else found.absolute()
    source = describe([*files, *([] if projector is None else [projector])])
    key = str(files[0]) if projector is None else f"{files[0]}\n{projector}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    directory = cache_root / f"{model_name(files[0])[:64]}-gguf-{digest}"
    if matches_source(directory, source):
        mark_used(directory)
        return directory
    contents = make_small_files(
        read_gguf(files), None if projector is None else read_gguf([projector])
    )
    template = find_chat_template(files[0])
    links = {file.name: file for file in (*files, *([] if template is None else [template]))}
    if projector is not None:
        links[f"{PROJECTOR}.gguf"] = projector  # the name of any file tells its kind
    try:
        store_directory(directory, contents, links, source)
    except OSError as error:
        raise ModelLoadError(
            f"{files[0]}: its tokenizer cannot be stored in {cache_root} (--cache-dir): {error}"
        ) from error
    logger.info("tokenizer and configuration of %s are in %s", files[0], directory)
    return directory


def describe(files: list[Path]) -> JsonObject:
    facts = [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    template = find_chat_template(files[0])
    return {
        "format": FORMAT,
        "chat_template": None if template is None else str(template),
        "files": [[str(file), *sizes] for file, sizes in zip(files, facts, strict=True)],
    }


def make_small_files(gguf: Gguf, projector: Gguf | None = None) -> dict[str, SmallFile]:
    """Returns the JSON values to write, by the names of their files. Raises ModelLoadError."""
    _check_num_tokens(gguf)
    text = make_model_config(gguf)
    files: dict[str, SmallFile] = {"config.json": text}
    if projector is not None:
        files |= make_seeing_files(text, projector)
    return files | make_tokenizer_files(gguf.metadata) | make_sentence_files(gguf)


def _check_num_tokens(gguf: Gguf) -> None:
    """Refuses more tokens than the embedding allows: millions of names would make a tokenizer of
    gigabytes.
    """
    embedding = gguf.tensors.get(_EMBEDDING)
    if embedding is None or not gguf.metadata.has(_TOKENS):
        return  # the reader of each of them raises the error
    num_tokens, num_rows = len(gguf.metadata.texts(_TOKENS)), embedding.shape[0]
    if num_tokens > _MOST_TOKENS_BY_ROW * num_rows:
        raise ModelLoadError(
            f"{gguf.metadata.source}: {_TOKENS} must name <= {_MOST_TOKENS_BY_ROW} tokens for "
            f"each of the {num_rows} rows of {_EMBEDDING}, found {num_tokens}"
        )
