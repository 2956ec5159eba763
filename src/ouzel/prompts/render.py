"""A request's messages, text or token ids become a prompt that fits the model: the last step before the engine."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_rendering import ChatRendering, template_variables
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.image_texts import marks_of, place_images, with_images
from ouzel.prompts.infill import Infill
from ouzel.prompts.marked_text import MarkedText, StandIns
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.media_readers.prepared_images import PreparedImage
from ouzel.prompts.messages import Message, Readable, media_in, normalise_messages
from ouzel.prompts.prompt_too_long import PromptTooLong, too_many_characters, too_many_tokens
from ouzel.prompts.shaped_messages import shape_messages, uncommon_roles, with_pages
from ouzel.prompts.spellings import Spellings
from ouzel.prompts.template import Template
from ouzel.prompts.template_trials.check import check_marks
from ouzel.prompts.template_trials.request_templates import RequestTemplates
from ouzel.prompts.truncation import Truncation
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_request import ImageInput

_MAX_SHRINKAGE = 4  # Unicode normalisation in the tokenizer makes one character of at most so many
_PLAIN_CHARS_PER_TOKEN = 8  # a text with no more characters may well fit
_PIECE_CHARS = 2**14
_AS_USUAL = ChatRendering()


@dataclass(frozen=True, slots=True)
class Prompt:
    text: str
    token_ids: list[int]  # at least one, and room for one more in max_model_len
    end_token_ids: tuple[int, ...] = ()  # end the output beside those of the tokenizer
    # says where an answer begins: `text`, with the marks broken that clients merely spell
    text_to_parse: str = ""
    images: tuple[ImageInput, ...] = ()  # ordered by their tokens

    def __post_init__(self) -> None:
        if not self.text_to_parse:
            object.__setattr__(self, "text_to_parse", self.text)


class PromptRenderer:
    """Is stateless and called from many threads; what cannot become a prompt is an `InvalidRequest`."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        chat_template: ChatTemplate | None,
        max_model_len: int,
        vocab_size: int | None = None,
        *,
        parsed_marks: Collection[str] = (),
        trusts_request_template: bool = False,
        images: ImageReader | None = None,
    ) -> None:
        """`vocab_size` is the model's, which may be smaller than the tokenizer's. `parsed_marks` say to parsers where
        an answer begins: they are the template's and the answers' alone, as control tokens are, be they tokens or not.
        """
        self._vocab_size = min(tokenizer.vocab_size, vocab_size or tokenizer.vocab_size)
        self._tokenizer = tokenizer
        own = tokenizer.control_tokens
        self._images = images
        words = [mark for mark in parsed_marks if mark and not any(text in mark for text in own)]
        self._marks = Spellings({*own, *words, *marks_of(images)})
        visible = {
            text for text, token_id in own.items() if token_id not in tokenizer.special_token_ids
        }
        answer_marks = {*visible, *words} - {*marks_of(images)}  # no answer has pictures
        self._request_templates: RequestTemplates | None = None
        if trusts_request_template:
            self._request_templates = RequestTemplates(
                tokenizer.special_tokens, self._marks.texts, answer_marks
            )
        self._chat_template: ChatTemplate | None = None
        if chat_template is not None:
            self._chat_template = chat_template.with_stand_ins(
                StandIns(self._marks), StandIns(Spellings(answer_marks))
            )
            check_marks(chat_template, self._chat_template, self._marks)
        self._infill = Infill.of(tokenizer)
        self._max_model_len = max_model_len
        token_lens = (
            len(tokenizer.token_bytes(token_id)) for token_id in range(tokenizer.vocab_size)
        )
        self._longest_token_bytes = max(token_lens, default=1)
        self._max_chars = _MAX_SHRINKAGE * max_model_len * self._longest_token_bytes

    @property
    def chat_template(self) -> ChatTemplate | None:
        return self._chat_template

    @property
    def supports_images(self) -> bool:
        """Tells whether the model reads pictures."""
        return self._images is not None

    @property
    def supports_videos(self) -> bool:
        """Tells whether the model reads videos."""
        return self._images is not None and self._images.has_videos

    @property
    def sees_documents(self) -> bool:
        """Tells whether the model reads PDFs, and the server can."""
        return self._images is not None and self._images.has_documents

    @property
    def fills_in(self) -> bool:
        """Tells whether the model has tokens to fill in the middle with."""
        return self._infill is not None

    def close(self) -> None:
        """Ends the process in which requests' own templates run, where there is one, and what loads pictures."""
        if self._request_templates is not None:
            self._request_templates.close()
        if self._images is not None:
            self._images.close()

    def render_chat(
        self,
        messages: object,
        rendering: ChatRendering = _AS_USUAL,
        *,
        truncation: Truncation | None = None,
    ) -> Prompt:
        """Takes `messages` as the client sent them."""
        # The template writes the special tokens itself.
        special = rendering.add_special_tokens
        marked, images = self._render(messages, rendering)
        if not images:
            return self._encoded(
                marked, add_special_tokens=special, truncation=truncation, param="messages"
            )
        prompt = self._encoded(
            marked, add_special_tokens=special, truncation=None, param="messages"
        )
        if (
            truncation is not None
            and len(prompt.token_ids) > truncation.within(self._max_model_len).max_tokens
        ):
            raise InvalidRequest(
                f"must be >= {len(prompt.token_ids)}, the length of this chat: one with pictures is not cut",
                field="truncate_prompt_tokens",
            )
        assert self._images is not None
        return replace(
            prompt, images=place_images(images, prompt.token_ids, self._images, self._tokenizer)
        )

    def encode_chat(
        self,
        messages: object,
        rendering: ChatRendering = _AS_USUAL,
        *,
        check: Callable[[str], None] | None = None,
    ) -> tuple[str, list[int]]:
        """Returns text and token ids of what `render_chat` gives, not checked against the model's limits either.

        `check` may refuse the text, before it is tokenized.
        """
        marked, _ = self._render(messages, rendering)
        if check is not None:
            check(marked.text)
        return marked.text, self._token_ids(marked, rendering.add_special_tokens)

    def _render(
        self, messages: object, rendering: ChatRendering
    ) -> tuple[MarkedText, list[PreparedImage]]:
        normalised = normalise_messages(
            messages, Readable(self.supports_images, self.supports_videos)
        )
        template = self._template_for(rendering, normalised)
        shaped = shape_messages(normalised, template)
        if rendering.tools and not template.capabilities.tools:
            raise InvalidRequest(": this model's chat template has no tools", field="tools")
        variables = template_variables(rendering, template)
        is_unfinished = rendering.continue_final_message
        media = media_in(normalised)
        by_part = [] if self._images is None or not media else self._images.prepared(media)
        images = [image for images in by_part for image in images]
        if images:
            shaped = with_pages(shaped, [len(each) for each in by_part])
        marked = template.write_chat(
            shaped, tools=rendering.tools, variables=variables, is_unfinished=is_unfinished
        )
        if self._images is None or not images:
            return marked, []
        return with_images(marked, images, self._images.placeholders, self._marks), images

    def _token_ids(self, text: MarkedText, add_special_tokens: bool) -> list[int]:
        spans = [
            span for span in text.spans if text.text[slice(*span)] in self._tokenizer.control_tokens
        ]
        return self._tokenizer.encode_guarded(
            text.text, spans, add_special_tokens=add_special_tokens
        )

    def _template_for(self, rendering: ChatRendering, messages: list[Message]) -> Template:
        if rendering.chat_template is not None:
            if self._request_templates is None:
                raise InvalidRequest(
                    "must not be given: this server renders chats with the model's own template "
                    "(see --trust-request-chat-template)",
                    field="chat_template",
                )
            return self._request_templates.template(
                rendering.chat_template, uncommon_roles(messages)
            )
        if self._chat_template is None:
            raise InvalidRequest(
                "this model has no chat template and cannot chat; send its prompt as text to /v1/completions",
                param="messages",
            )
        return self._chat_template

    def render_text(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        truncation: Truncation | None = None,
        param: str = "prompt",
    ) -> Prompt:
        """`param` is the path of the text in the request, for the errors."""
        return self._encoded(
            text, add_special_tokens=add_special_tokens, truncation=truncation, param=param
        )

    def render_token_ids(
        self,
        token_ids: Sequence[int],
        *,
        truncation: Truncation | None = None,
        param: str = "prompt",
    ) -> Prompt:
        self._check_token_ids(token_ids, param)
        prompt_ids = list(token_ids)
        if truncation is not None:
            prompt_ids = truncation.within(self._max_model_len).of_token_ids(prompt_ids, 0)
        return self._checked(
            self._tokenizer.decode(prompt_ids, skip_special_tokens=False), prompt_ids, param
        )

    def render_infill(
        self,
        prefix: str | Sequence[int],
        suffix: str,
        *,
        add_special_tokens: bool = True,
        param: str = "prompt",
    ) -> Prompt:
        """Makes the prompt for what stands between `prefix` and `suffix`. Control tokens that they spell are text."""
        if self._infill is None:
            raise InvalidRequest(
                ": this model has no tokens to fill in the middle with", field="suffix"
            )
        num_chars = len(suffix) + (len(prefix) if isinstance(prefix, str) else 0)
        if num_chars > self._max_chars:
            raise self._too_many_characters(num_chars, param)
        if isinstance(prefix, str):
            prefix = self._tokenizer.encode_guarded(prefix, (), add_special_tokens=False)
        else:
            self._check_token_ids(prefix, param)
        added = self._tokenizer.encode("", add_special_tokens=True) if add_special_tokens else []
        token_ids = added + self._infill.token_ids(prefix, suffix)
        prompt = self._checked(
            self._tokenizer.decode(token_ids, skip_special_tokens=False), token_ids, param
        )
        return replace(prompt, end_token_ids=self._infill.end_token_ids)

    def encode_output(self, text: str, *, param: str) -> list[int]:
        """Returns the tokens of what an output may be, as short as a prompt. Control tokens in it are text."""
        plain = MarkedText(text, ())
        return self._encoded(
            plain, add_special_tokens=False, truncation=None, param=param
        ).token_ids

    def _check_token_ids(self, token_ids: Sequence[int], param: str) -> None:
        last_id = self._vocab_size - 1
        for position, token_id in enumerate(token_ids):
            if not 0 <= token_id <= last_id:
                path = f"{param}[{position}]"
                raise InvalidRequest(
                    f"must be a token id from 0 to {last_id}, given {token_id}", field=path
                )

    def _encoded(
        self,
        text: str | MarkedText,
        *,
        add_special_tokens: bool,
        truncation: Truncation | None,
        param: str,
    ) -> Prompt:
        """In a plain text every control token counts."""
        num_chars = len(text if isinstance(text, str) else text.text)
        if truncation is not None:
            truncation = truncation.within(self._max_model_len)
            begin, end = self._span_that_matters(
                text if isinstance(text, str) else text.text, truncation
            )
            text, num_chars = (
                text[begin:end] if isinstance(text, str) else text.cut(begin, end),
                end - begin,
            )
        if num_chars > self._max_chars:
            # Tokenising many megabytes takes seconds; what cannot fit is refused unread.
            raise self._too_many_characters(num_chars, param)
        if truncation is None:
            self._check_beginning(text if isinstance(text, str) else text.text, param)
        without_spelled = None
        if isinstance(text, str):
            token_ids = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        else:
            token_ids = self._token_ids(text, add_special_tokens)
            without_spelled = text.without_spelled(self._marks)
            text = text.text
        if truncation is not None and len(token_ids) > truncation.max_tokens:
            num_added = self._num_added_before(token_ids) if add_special_tokens else 0
            token_ids = truncation.of_token_ids(token_ids, num_added)
            text = self._tokenizer.decode(token_ids[num_added:], skip_special_tokens=False)
            if without_spelled is not None:
                begin, end = truncation.span_of_text(len(without_spelled), len(text))
                without_spelled = without_spelled[begin:end]
        prompt = self._checked(text, token_ids, param)
        return prompt if without_spelled is None else replace(prompt, text_to_parse=without_spelled)

    def _check_beginning(self, text: str, param: str) -> None:
        """Refuses a text that is far too long by what its beginning has, piece by piece."""
        if len(text) <= _PLAIN_CHARS_PER_TOKEN * self._max_model_len:
            return
        num_tokens = 0
        for begin in range(0, len(text), _PIECE_CHARS):
            num_tokens += len(
                self._tokenizer.encode(text[begin : begin + _PIECE_CHARS], add_special_tokens=False)
            )
            num_tokens -= self._longest_token_bytes  # which a cut may have made of one
            if num_tokens > self._max_model_len:
                raise self._too_many_characters(len(text), param)

    def _span_that_matters(self, text: str, truncation: Truncation) -> tuple[int, int]:
        """Returns what surely has more tokens than are kept, so that megabytes are not tokenized for a few of them."""
        num_chars = _PLAIN_CHARS_PER_TOKEN * truncation.max_tokens + _PIECE_CHARS
        while num_chars < min(len(text), self._max_chars):
            begin, end = truncation.span_of_text(len(text), num_chars)
            token_ids = self._tokenizer.encode(text[begin:end], add_special_tokens=False)
            if (
                len(token_ids) > 2 * truncation.max_tokens + self._longest_token_bytes
            ):  # far from the cut
                return begin, end
            num_chars *= 4
        return truncation.span_of_text(len(text), self._max_chars)

    def _num_added_before(self, token_ids: list[int]) -> int:
        """Counts the tokens that the tokenizer puts before every text."""
        added = self._tokenizer.encode("", add_special_tokens=True)
        return len(added) if token_ids[: len(added)] == added else 0

    def _checked(self, text: str, token_ids: list[int], param: str) -> Prompt:
        if not token_ids:
            raise InvalidRequest("must not give an empty prompt", field=param)
        if len(token_ids) + 1 > self._max_model_len:
            raise too_many_tokens(len(token_ids), max_model_len=self._max_model_len, field=param)
        if max(token_ids) >= self._vocab_size:
            token = self._tokenizer.token_text(max(token_ids))
            raise InvalidRequest(
                f"holds {token!r}, a token that the model does not have", field=param
            )
        return Prompt(text, token_ids)

    def _too_many_characters(self, num_chars: int, param: str) -> PromptTooLong:
        return too_many_characters(num_chars, max_model_len=self._max_model_len, field=param)
