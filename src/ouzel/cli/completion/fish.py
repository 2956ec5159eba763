"""Writes the completion script of fish: a line for each command and flag."""

from collections.abc import Iterator, Sequence

from ouzel.cli.completion.flags import Completed, Flag, Value

_BEGINNING = """\
# Completion of ouzel for fish, of version {version}. After an upgrade: ouzel completion fish

function __ouzel_models
    set -l cache $HOME/.cache
    set -q XDG_CACHE_HOME; and set cache $XDG_CACHE_HOME
    set -l home $cache/huggingface
    set -q HF_HOME; and set home $HF_HOME
    set -l hub $home/hub
    set -q HF_HUB_CACHE; and set hub $HF_HUB_CACHE
    for path in $hub/models--*
        test -d $path; and string replace -r '.*/models--' '' $path | string replace -a -- -- /
    end
end

complete -c ouzel -f
complete -c ouzel -n __fish_use_subcommand -l version -d 'The version'
complete -c ouzel -n __fish_use_subcommand -l help -d 'The commands'
"""
_VALUES = {
    Value.NONE: "",
    Value.FILE: " -r -F",
    Value.DIRECTORY: " -x -a '(__fish_complete_directories)'",
    Value.MODEL: " -r -F -a '(__ouzel_models)'",
    Value.OTHER: " -x",
}


def fish_script(commands: Sequence[Completed], version: str) -> str:
    lines = [line for command in commands for line in _lines(command)]
    return _BEGINNING.format(version=version) + "\n".join(lines) + "\n"


def _lines(command: Completed) -> Iterator[str]:
    condition = f"-n '__fish_seen_subcommand_from {command.name}'"
    summary = _quoted(command.summary)
    yield f"complete -c ouzel -n __fish_use_subcommand -a {command.name} -d {summary}"
    if command.argument is Value.WORDS:
        yield f"complete -c ouzel {condition} -a '{' '.join(command.words)}'"
    elif command.argument is Value.MODEL:
        yield f"complete -c ouzel {condition} -F -a '(__ouzel_models)'"
    elif command.argument is Value.FILE:
        yield f"complete -c ouzel {condition} -F"
    for flag in command.flags:
        name, summary = flag.name[2:], _quoted(flag.summary)
        yield f"complete -c ouzel {condition} -l {name}{_value(flag)} -d {summary}"


def _value(flag: Flag) -> str:
    return f" -x -a '{' '.join(flag.words)}'" if flag.value is Value.WORDS else _VALUES[flag.value]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
