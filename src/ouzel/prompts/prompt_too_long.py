"""A prompt that does not fit is refused in OpenAI's words: clients that shorten a chat by themselves look for them.

The code is in the text too: some clients see nothing but the text.
"""

from ouzel.errors import ContextLengthExceeded


class PromptTooLong(ContextLengthExceeded):
    """The prompt alone leaves no token of `max_model_len` to the completion."""

    def __init__(self, excess: str, *, num_tokens: int, max_model_len: int, field: str) -> None:
        """`excess` goes on from the name of the field, and says how long it is; it has `num_tokens` at least."""
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
    """Makes the error for what is not tokenized, for it cannot fit."""
    excess = f"resulted in more than {max_model_len} tokens, of {num_chars} characters"
    return PromptTooLong(
        excess, num_tokens=max_model_len + 1, max_model_len=max_model_len, field=field
    )
