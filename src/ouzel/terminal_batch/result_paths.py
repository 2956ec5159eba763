"""Names the files beside the input file of a batch, and writes them whole or not at all."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ouzel.options.invalid_option import InvalidOption


@dataclass(frozen=True, slots=True)
class ResultPaths:
    """The files of a batch."""

    input: Path
    output: Path
    errors: Path
    state: Path  # the batch that runs on a server
    partial: Path  # results of an unfinished run in this process


def name_results(file: str, output: str) -> ResultPaths:
    """Returns the paths; the results are beside the input, unless `output` names another file."""
    path = Path(file)
    output_path = Path(output) if output else path.with_name(f"{path.stem}.results{path.suffix}")
    if output_path == path:
        raise InvalidOption(f"--output: must differ from the file of the requests, given {output}")
    stem = output_path.stem.removesuffix(".results")
    return ResultPaths(
        input=path,
        output=output_path,
        errors=output_path.with_name(f"{stem}.errors{output_path.suffix}"),
        state=output_path.with_name(f"{stem}.batch.json"),
        partial=output_path.with_name(f"{output_path.name}.partial"),
    )


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Writes a file; a crash leaves the old file or none. Raises InvalidOption."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.writelines(pieces)
        os.replace(temporary, path)
    except OSError as error:
        raise InvalidOption(f"{path}: the file cannot be written: {error.strerror}") from error
