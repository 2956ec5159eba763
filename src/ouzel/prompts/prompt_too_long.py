"""Defines the error for a prompt that is too long, in OpenAI's words.

Clients that shorten a chat look for these words. The text includes the error code, because some
clients see only the text.
"""

from ouzel.errors import ContextLengthExceeded


class PromptTooLong(ContextLengthExceeded):
    """The prompt leaves no room in `max_model_len` for a token of the completion."""

    def __init__(self, excess: str, *, num_tokens: int, max_model_len: int, field: str) -> None:
        """Makes the error; `excess` continues the sentence "However, your {field} …".
        `num_tokens` is the prompt's length, or a lower bound of it.
        """
        super().__init__(excess, param=field)
        self.num_tokens = num_tokens
        self.max_model_len = max_model_len

    def __str__(self) -> str:
        limit = f"This model's maximum context length is {self.max_model_len} tokens."
        advice = f"Please reduce the length of the {self.param} ({self.code})."
        return f"{limit} However, your {self.param} {self.args[0]}. {advice}"


def too_many_tokens(num_tokens: int, *, max_model_len: int, field: str) -> PromptTooLong:
    beside = ", and the completion needs one more" if num_tokens == max_model_len else ""
    excess = f"resulted in {num_tokens} tokens{beside}"
    return PromptTooLong(excess, num_tokens=num_tokens, max_model_len=max_model_len, field=field)


def too_many_characters(num_chars: int, *, max_model_len: int, field: str) -> PromptTooLong:
    """Makes the error for a text that is not tokenized, because its characters cannot fit."""
    excess = f"resulted in more than {max_model_len} tokens, of {num_chars} characters"
    return PromptTooLong(
        excess, num_tokens=max_model_len + 1, max_model_len=max_model_len, field=field
    )
