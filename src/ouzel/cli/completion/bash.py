"""Writes the completion script of bash; the script needs no bash-completion package."""

from collections.abc import Iterable, Sequence

from ouzel.cli.completion.flags import Completed, Value

_SCRIPT = """\
# Completion of ouzel for bash, of version {version}. After an upgrade: ouzel completion bash

# Candidates are lines that nothing expands: a name may hold blanks and other special characters.
_ouzel_lines() {{
    local line
    while IFS= read -r line; do
        [[ "$line" == "$word"* ]] && COMPREPLY+=( "$line" )
    done
}}

_ouzel_paths() {{
    _ouzel_lines < <(compgen "$1" -- "$word")
}}

_ouzel_models() {{
    local cache="${{HF_HOME:-${{XDG_CACHE_HOME:-$HOME/.cache}}/huggingface}}"
    local path hub="${{HF_HUB_CACHE:-$cache/hub}}"
    for path in "$hub"/models--*; do
        [[ -d "$path" ]] && path="${{path##*/models--}}" && printf '%s\\n' "${{path//--//}}"
    done
}}

_ouzel() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]}}" words
    COMPREPLY=()
    if [[ "$word" == "=" ]]; then
        word=""
    elif [[ "$before" == "=" ]]; then
        before="${{COMP_WORDS[COMP_CWORD-2]}}"
    fi
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=( $(compgen -W "{commands} --help --version" -- "$word") )
        return
    fi
    case "$command $before" in
{values}
    esac
    if [[ "$word" == -* ]]; then
        case "$command" in
{flags}
        esac
        COMPREPLY=( $(compgen -W "$words" -- "$word") )
        return
    fi
    case "$command" in
{arguments}
    esac
}}

complete -o filenames -F _ouzel ouzel
"""
_REPLIES = {
    Value.FILE: "_ouzel_paths -f",
    Value.DIRECTORY: "_ouzel_paths -d",
    Value.MODEL: "_ouzel_lines < <(_ouzel_models); _ouzel_paths -f",
    Value.OTHER: ":",
}


def bash_script(commands: Sequence[Completed], version: str) -> str:
    return _SCRIPT.format(
        version=version,
        commands=" ".join(command.name for command in commands),
        values=_values(commands),
        flags=_lines(
            f'            {each.name}) words="{" ".join(flag.name for flag in each.flags)}" ;;'
            for each in commands
        ),
        arguments=_lines(
            f"        {each.name}) {_reply(each.argument, each.words)} ;;"
            for each in commands
            if each.argument is not Value.NONE
        ),
    )


def _values(commands: Sequence[Completed]) -> str:
    """Returns a case of the shell's `case` for each kind of value, with all flags of that kind."""
    patterns: dict[str, list[str]] = {}
    for command in commands:
        for flag in command.flags:
            if flag.value is not Value.NONE:
                patterns.setdefault(_reply(flag.value, flag.words), []).append(
                    f'"{command.name} {flag.name}"'
                )
    return _lines(
        f"        {'|'.join(flags)})\n            {reply}\n            return ;;"
        for reply, flags in patterns.items()
    )


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _reply(value: Value, words: Sequence[str]) -> str:
    if value is Value.WORDS:
        return f'COMPREPLY=( $(compgen -W "{" ".join(words)}" -- "$word") )'
    return _REPLIES[value]
