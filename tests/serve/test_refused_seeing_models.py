"""A model that sees whose small files contradict each other does not start."""

import json
from pathlib import Path

from tests.backends.seeing_families import FAMILIES
from tests.serve.running import failure


def test_the_token_of_pictures_stands_for_no_unknown_character(tmp_path: Path) -> None:
    """A client's unknown character would count as a token of a picture."""
    path = FAMILIES["minicpmv"].write(tmp_path) / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["unk_token"] = "<unk>"
    path.write_text(json.dumps(content))

    errors = failure(str(tmp_path), cache_dir=tmp_path / "cache")

    assert (
        "tokenizer.json: '<unk>', the token of images, must not stand for unknown characters"
        in errors
    )
