"""The `--config` file is YAML. A key that stands twice is refused: YAML's reader would drop the first one silently."""

from pathlib import Path
from typing import Any  # option values are typed by `converted`

import yaml

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.records import RECORDS, options_of
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
    """Returns the values by option, as they are written. Raises InvalidOption."""
    try:
        with path.open(
            encoding="utf-8"
        ) as file:  # from text, a message would quote the line, and it may hold a key
            content = yaml.load(file, _Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidOption(f"--config {path}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise InvalidOption(f"--config {path}: must hold a mapping of option names to values")
    known = {option.name for record in RECORDS for option in options_of(record)}
    unknown = sorted(set(map(str, content)) - known)
    if unknown:
        suggestion = did_you_mean([key.replace("-", "_") for key in unknown], known)
        raise InvalidOption(f"--config {path}: there is no option {', '.join(unknown)}{suggestion}")
    return content
