"""A decoder that scores reads a pair as Qwen3-Reranker does: a prompt that asks for yes or no.

Reference: the card of Qwen/Qwen3-Reranker-0.6B. What its answer would be is the score: the logits of the two tokens
behind the prompt. Of a checkpoint with a head of its own (Qwen3ForSequenceClassification) it is the head's.
"""

from ouzel.errors import InvalidRequest
from ouzel.generation import PromptTooLong, ServedModel

DEFAULT_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
_BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
_MARK = "<|im_start|>"
_BEHIND = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


class RerankerPrompt:
    """The tokens of the frame are the template's alone: what queries and documents spell is text."""

    def __init__(self, model: ServedModel) -> None:
        self._tokenizer = model.tokenizer
        self._before, self._behind = (self._frame(text) for text in (_BEFORE, _BEHIND))

    @classmethod
    def of(cls, model: ServedModel) -> "RerankerPrompt | None":
        """Returns None where the tokenizer has not the tokens of the frame: such a model reads plain pairs."""
        return cls(model) if _MARK in model.tokenizer.control_tokens else None

    def token_ids(
        self, query: str, document: str, *, max_tokens: int | None, instruction: str | None, query_field: str
    ) -> list[int]:
        """Cuts the end of the document so that the frame and the query stay whole. Raises InvalidRequest."""
        question = f"<Instruct>: {instruction or DEFAULT_INSTRUCTION}\n<Query>: {query}\n<Document>: "
        token_ids = self._encode(question + document)
        if max_tokens is not None:
            room = max_tokens - len(self._before) - len(self._behind)
            if room < 1:
                least = len(self._before) + len(self._behind) + 1
                raise InvalidRequest(f"must be >= {least}, given {max_tokens}", field="truncate_prompt_tokens")
            if len(token_ids) > room and len(self._encode(question)) >= room:
                excess = "leaves no token to the document"
                raise PromptTooLong(excess, num_tokens=len(token_ids), max_model_len=max_tokens, field=query_field)
            token_ids = token_ids[:room]
        return [*self._before, *token_ids, *self._behind]

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode_guarded(text, (), add_special_tokens=False)

    def _frame(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)
