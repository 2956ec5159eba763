"""Prompts may be cut to a number of tokens rather than refused (vLLM's `truncate_prompt_tokens`, `truncation_side`)."""

from dataclasses import dataclass, replace

from ouzel.errors import InvalidRequest

_FIELD = "truncate_prompt_tokens"
_ALL_THAT_FIT = -1
# of the context, where a limit of tokens is none: no prompt could stand beside so many
_SHARE_OF_ANSWER = 8


@dataclass(frozen=True, slots=True)
class Truncation:
    max_tokens: int  # of the prompt; -1 for all that fit
    keeps_end: bool = True  # else the beginning
    num_kept_free: int = 1  # tokens that must fit beside those that fit

    def within(self, max_model_len: int) -> "Truncation":
        """Returns the same with at least one token. Raises InvalidRequest for more than `max_model_len`."""
        if self.max_tokens == _ALL_THAT_FIT:
            is_limit = self.num_kept_free < max_model_len
            num_free = self.num_kept_free if is_limit else max_model_len // _SHARE_OF_ANSWER
            return replace(self, max_tokens=max(max_model_len - num_free, 1))
        if not 1 <= self.max_tokens <= max_model_len:
            limit = f"must be -1 or from 1 to {max_model_len}"
            raise InvalidRequest(f"{limit}, given {self.max_tokens}", field=_FIELD)
        return self

    def span_of_text(self, num_chars: int, max_chars: int) -> tuple[int, int]:
        """Cuts where more characters than this cannot matter, so that megabytes are not tokenised for a few tokens."""
        return (
            (max(num_chars - max_chars, 0), num_chars)
            if self.keeps_end
            else (0, min(num_chars, max_chars))
        )

    def of_token_ids(self, token_ids: list[int], num_leading: int) -> list[int]:
        """Cuts behind the first `num_leading`, which the tokenizer puts before every text, or at the end."""
        if len(token_ids) <= self.max_tokens:
            return token_ids
        if not self.keeps_end:
            return token_ids[: self.max_tokens]
        num_leading = min(num_leading, self.max_tokens)
        return token_ids[:num_leading] + token_ids[len(token_ids) - self.max_tokens + num_leading :]
