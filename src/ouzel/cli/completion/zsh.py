"""Writes the completion script of zsh, for zsh's own completion system."""

from collections.abc import Sequence

from ouzel.cli.completion.flags import Completed, Flag, Value

_SCRIPT = """\
#compdef ouzel
# Completion of ouzel for zsh, of version {version}. After an upgrade: ouzel completion zsh

_ouzel_models() {{
    local hub="${{HF_HUB_CACHE:-${{HF_HOME:-${{XDG_CACHE_HOME:-$HOME/.cache}}/huggingface}}/hub}}"
    local -a names
    names=( "$hub"/models--*(N/:t) )
    names=( "${{names[@]#models--}}" )
    names=( "${{names[@]//--//}}" )
    compadd -a names
    _files
}}

_ouzel() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        _arguments '--version[the version]' '--help[the commands]'
        return
    fi
    local command="${{words[2]}}"
    shift words
    (( CURRENT-- ))
    case "$command" in
{cases}
    esac
}}

if [[ "${{funcstack[1]}}" == _ouzel ]]; then
    _ouzel "$@"
else
    compdef _ouzel ouzel
fi
"""
_ACTIONS = {
    Value.FILE: "_files",
    Value.DIRECTORY: "_files -/",
    Value.MODEL: "_ouzel_models",
    Value.OTHER: " ",
}


def zsh_script(commands: Sequence[Completed], version: str) -> str:
    return _SCRIPT.format(
        version=version,
        commands="\n".join(
            f"        {_quoted(f'{each.name}:{each.summary}')}" for each in commands
        ),
        cases="\n".join(_case(each) for each in commands),
    )


def _case(command: Completed) -> str:
    specs = [_spec(flag) for flag in command.flags]
    if command.argument is not Value.NONE:
        specs.append(_quoted(f"*:argument:{_action(command.argument, command.words)}"))
    lines = "".join(f" \\\n                {spec}" for spec in specs)
    return f"        {command.name})\n            _arguments{lines}\n            ;;"


def _spec(flag: Flag) -> str:
    """Returns the specification of one flag for `_arguments`; every flag may be repeated."""
    summary = flag.summary.replace("\\", "").replace("[", "(").replace("]", ")").replace(":", " -")
    if flag.value is Value.NONE:
        return _quoted(f"*{flag.name}[{summary}]")
    return _quoted(f"*{flag.name}=[{summary}]:value:{_action(flag.value, flag.words)}")


def _action(value: Value, words: Sequence[str]) -> str:
    return f"({' '.join(words)})" if value is Value.WORDS else _ACTIONS[value]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
