"""Makes the settings of Codex CLI: flags, and a catalogue of models, in a CODEX_HOME of its own.

The settings are flags, because Codex itself writes to its files of settings, also to a profile.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ouzel.launch.client import KEY_VARIABLE, Setup, Target

_CATALOGUE = "ouzel-models.json"


def prepare_codex(target: Target, directory: Path) -> Setup:
    provider = {"name": "Ouzel", "base_url": target.base_url, "wire_api": "responses"}
    variables = {"CODEX_HOME": str(directory)}
    if target.api_key:
        provider["env_key"] = KEY_VARIABLE
        variables[KEY_VARIABLE] = target.api_key
    settings = {
        "model": _quote(target.model),
        "model_provider": _quote("ouzel"),
        "model_context_window": str(target.context),
        "model_providers.ouzel": _write_table(provider),
    }
    files = {}
    if target.codex_catalogue:
        files[_CATALOGUE] = target.codex_catalogue
        settings["model_catalog_json"] = _quote(str(directory / _CATALOGUE))
    return Setup(files=files, variables=variables, arguments=tuple(_write_flags(settings)))


def _write_flags(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        yield from ("-c", f"{name}={value}")


def _write_table(entries: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name} = {_quote(value)}" for name, value in entries.items()) + "}"


def _quote(text: str) -> str:
    """Writes a text in TOML; JSON's strings are TOML's, except for DEL, which TOML escapes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
