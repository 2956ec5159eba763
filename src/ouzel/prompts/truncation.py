"""Cuts prompts to a number of tokens (vLLM's `truncate_prompt_tokens` and `truncation_side`)."""

from dataclasses import dataclass, replace

from ouzel.errors import InvalidRequest

_FIELD = "truncate_prompt_tokens"
_ALL_THAT_FIT = -1
# The share of the context left free if `num_kept_free` is too large to leave room for a prompt.
_SHARE_OF_ANSWER = 8


@dataclass(frozen=True, slots=True)
class Truncation:
    """How a request wants a long prompt to be cut."""

    max_tokens: int  # length of the prompt; -1 for all tokens that fit
    keeps_end: bool = True  # False keeps the beginning
    num_kept_free: int = 1  # tokens to leave free for the answer with -1

    def within(self, max_model_len: int) -> "Truncation":
        """Returns a copy with a `max_tokens` of at least one.

        Raises InvalidRequest if it is more than `max_model_len`.
        """
        if self.max_tokens == _ALL_THAT_FIT:
            is_limit = self.num_kept_free < max_model_len
            num_free = self.num_kept_free if is_limit else max_model_len // _SHARE_OF_ANSWER
            return replace(self, max_tokens=max(max_model_len - num_free, 1))
        if not 1 <= self.max_tokens <= max_model_len:
            limit = f"must be -1 or from 1 to {max_model_len}"
            raise InvalidRequest(f"{limit}, given {self.max_tokens}", field=_FIELD)
        return self

    def span_of_text(self, num_chars: int, max_chars: int) -> tuple[int, int]:
        """Returns the begin and end of the `max_chars` characters at the side that is kept."""
        if self.keeps_end:
            return max(num_chars - max_chars, 0), num_chars
        return 0, min(num_chars, max_chars)

    def cut_token_ids(self, token_ids: list[int], num_leading: int) -> list[int]:
        """Cuts token ids, but keeps the first `num_leading`, which the tokenizer puts before every
        text.
        """
        if len(token_ids) <= self.max_tokens:
            return token_ids
        if not self.keeps_end:
            return token_ids[: self.max_tokens]
        num_leading = min(num_leading, self.max_tokens)
        return token_ids[:num_leading] + token_ids[len(token_ids) - self.max_tokens + num_leading :]
