"""Compares the tokens of a draft model with the tokens of its model, which must be the same."""

import json
from pathlib import Path

from ouzel.checkpoint.model_files import read_tokenizer_json
from ouzel.errors import ModelLoadError


def refuse_other_tokens(directory: Path, draft_directory: Path) -> None:
    """Raises ModelLoadError if the draft model has other tokens than the model."""
    of_large, of_draft = map(read_token_ids, (directory, draft_directory))
    if of_large != of_draft:
        differing = sum(
            of_large.get(each) != of_draft.get(each) for each in of_large.keys() | of_draft.keys()
        )
        raise ModelLoadError(
            f"draft_model: must have the tokens of the model, but {differing} of {len(of_large)} "
            f"differ in {draft_directory}"
        )


def read_token_ids(directory: Path) -> dict[str, int]:
    """Returns the id of each token of `tokenizer.json` by its text.

    Raises ModelLoadError if the file is missing or broken.
    """
    path = directory / "tokenizer.json"
    try:
        content = json.loads(read_tokenizer_json(path))
    except (OSError, ValueError) as error:
        raise ModelLoadError(
            f"draft_model: the tokens of {path} cannot be compared: {error}"
        ) from error
    vocabulary = content.get("model", {}).get("vocab", {})
    if isinstance(vocabulary, list):  # a unigram model: pairs of text and score
        vocabulary = {text: token_id for token_id, (text, _) in enumerate(vocabulary)}
    return dict(vocabulary) | {
        token["content"]: token["id"] for token in content.get("added_tokens", [])
    }
