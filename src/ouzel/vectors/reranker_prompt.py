"""Makes the prompt with which a decoder scores a pair, as Qwen3-Reranker and Qwen3-VL-Reranker do.

Reference: the model cards of Qwen/Qwen3-Reranker-0.6B and Qwen/Qwen3-VL-Reranker-2B. The score is
computed from the logits of the tokens yes and no behind the prompt, or by the head of a checkpoint
that has one (Qwen3ForSequenceClassification).
"""

from dataclasses import dataclass

from ouzel.errors import InvalidRequest
from ouzel.generation import PromptTooLong, ServedModel
from ouzel.tokenizer.base import FramedText

_BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
_MARK = "<|im_start|>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The texts around instruction, query and document."""

    instruction: str  # stands where a request has none
    query: str
    document: str
    behind: str


_TEXT_FORM = _Form(
    instruction="Given a web search query, retrieve relevant passages that answer the query",
    query="\n<Query>: ",
    document="\n<Document>: ",
    behind="<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
)
_SEEING_FORM = _Form(
    instruction="Given a search query, retrieve relevant candidates that answer the query.",
    query="<Query>:",
    document="\n<Document>:",
    behind="<|im_end|>\n<|im_start|>assistant\n",
)
_SEEING_TYPES = ("qwen3_vl", "qwen3_vl_moe")


class RerankerPrompt:
    """Encodes pairs for a decoder. Only the frame has control tokens; spelled in queries and
    documents they are text.
    """

    def __init__(self, model: ServedModel) -> None:
        self._tokenizer = model.tokenizer
        is_seeing = model.engine.info.model_type in _SEEING_TYPES
        self._form = _SEEING_FORM if is_seeing else _TEXT_FORM
        self._before, self._behind = (self._frame(text) for text in (_BEFORE, self._form.behind))

    @classmethod
    def for_model(cls, model: ServedModel) -> "RerankerPrompt | None":
        """Returns None if the tokenizer lacks the frame's control tokens: such a model reads plain
        pairs.
        """
        return cls(model) if _MARK in model.tokenizer.control_tokens else None

    def token_ids(
        self,
        query: str,
        document: str,
        *,
        max_tokens: int | None,
        instruction: str | None,
        query_field: str,
        keeps_end: bool = False,
        max_document_tokens: int | None = None,
    ) -> list[int]:
        """Encodes a pair. Only the document is cut, at its end or, with `keeps_end`, at its start.

        Raises PromptTooLong for `query_field` if the query leaves no room for the document.
        """
        question, document = self._parts(query, document, instruction)
        token_ids = self._encode(question + document)
        num_frame = len(self._before) + len(self._behind)
        room = len(token_ids) if max_tokens is None else max_tokens - num_frame
        if room < 1:
            complaint = f"must be >= {num_frame + 1}, given {max_tokens}"
            raise InvalidRequest(complaint, field="truncate_prompt_tokens")
        most = len(token_ids) if max_document_tokens is None else max_document_tokens
        if len(token_ids) > min(room, most):
            num_question = len(self._encode(question))
            if len(token_ids) > room and num_question >= room:
                excess = "leaves no token to the document"
                raise PromptTooLong(
                    excess,
                    num_tokens=len(token_ids),
                    max_model_len=max_tokens or 0,
                    field=query_field,
                )
            question_ids, document_ids = token_ids[:num_question], token_ids[num_question:]
            num_kept = min(max(room - num_question, 1), most)
            token_ids = question_ids + (
                document_ids[-num_kept:] if keeps_end else document_ids[:num_kept]
            )
        return [*self._before, *token_ids, *self._behind]

    def framed(self, query: str, document: str, instruction: str | None) -> FramedText:
        """Encodes a pair, with the document's tokens apart from the frame, the instruction and the
        query.
        """
        question, document = self._parts(query, document, instruction)
        token_ids, num_question = self._encode(question + document), len(self._encode(question))
        return FramedText(
            [*self._before, *token_ids[:num_question]], token_ids[num_question:], self._behind
        )

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode_guarded(text, (), add_special_tokens=False)

    def _frame(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _parts(self, query: str, document: str, instruction: str | None) -> tuple[str, str]:
        """Returns the text between the frame and the document, and the document.

        Clients of vLLM and OVMS send the frame around the query and each document; then it is
        removed.
        """
        form = self._form
        if not query.startswith(_BEFORE):
            instruction = instruction or form.instruction
            return f"<Instruct>: {instruction}{form.query}{query}{form.document}", document
        if instruction is not None:
            raise InvalidRequest(
                ": the query already contains the model's prompt with an instruction",
                field="instruction",
            )
        question, document = query.removeprefix(_BEFORE), document.removesuffix(form.behind)
        mark = form.document.removeprefix("\n")
        if document.startswith(mark):
            question, document = question + mark, document.removeprefix(mark)
        return question, document
