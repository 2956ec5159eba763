"""Reads YAML files; unlike YAML's own reader, refuses a key that stands twice."""

from pathlib import Path
from typing import Any  # `converted` checks the values

import yaml

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.records import RECORDS, list_options
from ouzel.terminal.suggestion import did_you_mean


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} stands twice in a mapping", key.start_mark
                    )
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def read_options_file(path: Path) -> dict[str, Any]:
    """Returns the values of the file by the names of options. Raises InvalidOption."""
    content = read_yaml(path, f"--config {path}")
    if not isinstance(content, dict):
        raise InvalidOption(f"--config {path}: must hold a mapping of option names to values")
    known = {option.name for record in RECORDS for option in list_options(record)}
    unknown = sorted(set(map(str, content)) - known)
    if unknown:
        suggestion = did_you_mean([key.replace("-", "_") for key in unknown], known)
        raise InvalidOption(f"--config {path}: there is no option {', '.join(unknown)}{suggestion}")
    return content


def read_yaml(path: Path, name: str) -> object:
    """Returns the content of a file. Raises InvalidOption, with `name` in its message."""
    try:
        # YAML reads the open file: given a text, its messages would quote lines, and perhaps a key.
        with path.open(encoding="utf-8") as file:
            content: object = yaml.load(file, _Loader)
    except OSError as error:
        raise InvalidOption(f"{name}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidOption(f"{name}: {' '.join(str(error).split())}") from error
    return content
