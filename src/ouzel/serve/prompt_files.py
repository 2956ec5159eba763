"""Reads the prompt templates of `--prompts`: a YAML file, or a directory of such files."""

import asyncio
import logging
from functools import partial
from pathlib import Path

from ouzel.errors import InvalidRequest
from ouzel.options.file import read_yaml
from ouzel.options.invalid_option import InvalidOption
from ouzel.responses.templates.library import PromptLibrary
from ouzel.responses.templates.template import PromptTemplate, Templates, read_templates

_SUFFIXES = (".yaml", ".yml")

logger = logging.getLogger(__name__)


def open_prompts(path: str) -> PromptLibrary:
    """Returns the templates; without a path there are none. Raises InvalidOption."""
    return PromptLibrary(partial(_read_path, Path(path).expanduser())) if path else PromptLibrary()


async def reload_prompts(prompts: PromptLibrary) -> None:
    """Reads the templates again; the log has an error, and the old templates then stay."""
    try:
        await asyncio.to_thread(prompts.reload)
    except InvalidOption as error:
        logger.error("the prompts were not reloaded: %s", error)
    except Exception:  # broad: no task awaits the caller, and it must survive for later changes
        logger.exception("the prompts could not be reloaded")
    else:
        logger.info("the prompts were reloaded: %s", ", ".join(prompts.templates) or "none")


def _read_path(path: Path) -> Templates:
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES)
        if not files:
            raise InvalidOption(f"--prompts {path}: the directory has no file *.yaml or *.yml")
    else:
        files = [path]
    templates: dict[str, PromptTemplate] = {}
    for file in files:
        name = f"--prompts {file}"
        try:
            read = read_templates(read_yaml(file, name))
        except InvalidRequest as error:
            raise InvalidOption(f"{name}: {error}") from error
        for template in read:
            if template.id in templates:
                raise InvalidOption(f"{name}: the prompt {template.id} stands twice")
            templates[template.id] = template
    return templates
