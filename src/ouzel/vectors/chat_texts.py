"""Writes each text as a chat, for models that make vectors of chats (Qwen3-VL-Embedding).

The chat template writes the marks of a turn around the text. A text that is too long is cut inside
of these marks: the last token, of which the vector is made, must stay.
"""

from ouzel.checkpoint.model_files import brief
from ouzel.checkpoint.sentence_chats import SentenceChats
from ouzel.errors import InvalidRequest, ModelLoadError
from ouzel.generation import ChatRendering, ServedModel
from ouzel.tokenizer.base import FramedText
from ouzel.vectors.pieces import count_equal

# Two texts without a common token at either end.
_PROBES = ("a", "b")

Frame = tuple[list[int], list[int]]  # the tokens before and after a text


class ChatTexts:
    """Encodes texts within a chat. It is called from many threads."""

    def __init__(self, model: ServedModel, chats: SentenceChats) -> None:
        self._renderer = model.renderer
        self._chats = chats
        # the frame of each prompt of the model's files, with and without special tokens
        self._frames: dict[tuple[str, bool], Frame] = {}

    @classmethod
    def for_model(cls, model: ServedModel) -> "ChatTexts | None":
        """Returns None for a model of plain texts."""
        chats = None if model.sentences is None else model.sentences.chats
        return None if chats is None else cls(model, chats)

    def framed(self, prompt: str, text: str, *, add_special_tokens: bool = True) -> FramedText:
        """Encodes a chat whose system gives the prompt.

        The text's tokens are apart from the marks.
        """
        before, behind = self.frame(prompt, add_special_tokens=add_special_tokens)
        token_ids = self._token_ids(prompt, text, add_special_tokens)
        # The ends of a text may be joined with marks to tokens; such tokens count as the text.
        num_before = count_equal(token_ids, before)
        rest = token_ids[num_before:]
        end = len(rest) - count_equal(reversed(rest), reversed(behind))
        return FramedText(token_ids[:num_before], rest[:end], rest[end:])

    def frame(self, prompt: str, *, add_special_tokens: bool = True) -> Frame:
        """Returns the tokens around every text of a chat whose system gives the prompt."""
        key = prompt, add_special_tokens
        if key not in self._frames:
            one, other = (self._token_ids(prompt, probe, add_special_tokens) for probe in _PROBES)
            num_before = count_equal(one, other)
            num_behind = count_equal(reversed(one), reversed(other))
            self._frames[key] = one[:num_before], one[len(one) - num_behind :]
        return self._frames[key]

    def _token_ids(self, prompt: str, text: str, add_special_tokens: bool) -> list[int]:
        rendering = ChatRendering(
            template_kwargs=self._chats.template_kwargs,
            add_generation_prompt=self._chats.add_generation_prompt,
            add_special_tokens=add_special_tokens and self._chats.add_special_tokens,
        )
        messages = [_message("system", prompt)] if prompt else []
        messages.append(_message("user", text))
        _, token_ids = self._renderer.encode_chat(messages, rendering)
        return token_ids


def check_chats(model: ServedModel, name: str) -> None:
    """Raises ModelLoadError if the chat template of the model `name` cannot write its texts with
    one of its prompts, as the settings of its files say.
    """
    chats, files = ChatTexts.for_model(model), model.sentences
    if chats is None or files is None:
        return
    for prompt in dict.fromkeys((files.default_prompt.text, *files.prompts.values())):
        try:
            chats.frame(prompt)
        except InvalidRequest as error:
            within = f"with the prompt {brief(prompt)}" if prompt else "without a prompt"
            raise ModelLoadError(
                f"{name}: sentence_bert_config.json: texts cannot be written as chats {within}: "
                f"{error}"
            ) from error


def _message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": [{"type": "text", "text": text}]}
