"""Chooses the prompt for Cohere's `input_type`, which names the purpose of texts."""

from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.checkpoint.text_tasks import NO_PROMPT, TextPrompt
from ouzel.errors import InvalidRequest
from ouzel.wire.validation_errors import show_value

_QUERY, _DOCUMENT = "search_query", "search_document"


def choose_prompt(input_type: str | None, files: SentenceFiles) -> TextPrompt:
    """Returns the prompt for texts of this type.

    A model without prompts reads all texts alike. A model with prompts, but without a prompt for
    this type, would make vectors for another purpose: the request is refused.
    """
    if input_type is None:
        return files.default_prompt
    by_name = {name.lower(): files.named_prompt(name) for name in files.prompts}
    named = by_name.get(input_type.lower())
    if named is not None and (named.text or named.task):
        return named
    if input_type == _QUERY:
        return files.query_prompt
    if input_type == _DOCUMENT:
        return files.document_prompt
    if named is not None:
        return named
    if not any(files.prompts.values()) and input_type in ("classification", "clustering"):
        return NO_PROMPT
    names = ", ".join([_QUERY, _DOCUMENT, *files.prompts])
    raise InvalidRequest(
        f"must be one of {names}, given {show_value(input_type)}", field="input_type"
    )
