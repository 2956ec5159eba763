"""Renders the messages, text or token ids of a request into a prompt that fits the model."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_rendering import (
    ChatRendering,
    list_reasoning_efforts,
    template_variables,
)
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.image_texts import (
    insert_image_texts,
    list_image_marks,
    list_readable_media,
    place_images,
)
from ouzel.prompts.infill import Infill
from ouzel.prompts.marked_text import MarkedText, StandIns
from ouzel.prompts.media_readers.document_texts import DocumentTextReader
from ouzel.prompts.media_readers.image_reader import ImageReader
from ouzel.prompts.media_readers.prepared_images import PreparedImage
from ouzel.prompts.messages import Message, ReadableMedia, collect_media, normalise_messages
from ouzel.prompts.prompt import Prompt
from ouzel.prompts.prompt_too_long import PromptTooLong, too_many_characters, too_many_tokens
from ouzel.prompts.shaped_messages import repeat_media_parts, shape_messages, uncommon_roles
from ouzel.prompts.spellings import Spellings
from ouzel.prompts.template import Template
from ouzel.prompts.template_trials.check import check_marks
from ouzel.prompts.template_trials.request_templates import RequestTemplates
from ouzel.prompts.truncation import Truncation
from ouzel.tokenizer.base import Tokenizer

# Unicode normalisation in the tokenizer may join this many characters into one.
_MAX_SHRINKAGE = 4
# A text of at most this many characters per token of the limit is encoded without a first check.
_PLAIN_CHARS_PER_TOKEN = 8
_PIECE_CHARS = 2**14
_DEFAULT_RENDERING = ChatRendering()


class PromptRenderer:
    """Makes prompts of requests, or raises `InvalidRequest`. Many threads call it."""

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
        document_texts: DocumentTextReader | None = None,
        num_output_tokens: int = 1,
    ) -> None:
        """`vocab_size` is the model's and may be smaller than the tokenizer's. `parsed_marks` are
        texts by which the parser finds where an answer begins; like control tokens, they count only
        where the template or an earlier answer writes them. `document_texts` reads documents that
        are no pictures for the model. `num_output_tokens` must have room behind a prompt.
        """
        self._num_output_tokens = num_output_tokens
        self._vocab_size = min(tokenizer.vocab_size, vocab_size or tokenizer.vocab_size)
        self._tokenizer = tokenizer
        own = tokenizer.control_tokens
        self._images = images
        self._document_texts = document_texts
        self._readable = list_readable_media(images, document_texts)
        words = [mark for mark in parsed_marks if mark and not any(text in mark for text in own)]
        self._marks = Spellings({*own, *words, *list_image_marks(images)})
        visible = {
            text for text, token_id in own.items() if token_id not in tokenizer.special_token_ids
        }
        answer_marks = {*visible, *words} - {*list_image_marks(images)}  # no answer has pictures
        self._request_templates: RequestTemplates | None = None
        if trusts_request_template:
            self._request_templates = RequestTemplates(
                tokenizer.special_tokens, self._marks.texts, answer_marks
            )
        self._chat_template: ChatTemplate | None = None
        if chat_template is not None:
            if images is not None and images.writes_pictures_as_lines:
                chat_template = chat_template.with_lines_of_pictures(images.placeholder)
            self._chat_template = chat_template.with_stand_ins(
                StandIns(self._marks), StandIns(Spellings(answer_marks))
            )
            check_marks(chat_template, self._chat_template, self._marks)
        self._infill = Infill.for_tokenizer(tokenizer)
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
    def reasoning_efforts(self) -> tuple[str, ...]:
        """Returns the efforts of reasoning that change the prompt of a chat, lowest first."""
        return () if self._chat_template is None else list_reasoning_efforts(self._chat_template)

    @property
    def supports_images(self) -> bool:
        return self._readable.pictures

    @property
    def readable(self) -> ReadableMedia:
        return self._readable

    @property
    def reads_documents(self) -> bool:
        """Tells whether chats may have PDFs, which become pictures or texts."""
        if self._images is not None and self._images.has_pictures:
            return self._images.has_documents
        texts = self._document_texts
        return texts is not None and texts.can_read and self._chat_template is not None

    @property
    def fills_in(self) -> bool:
        """Tells whether the model has tokens for filling in the middle."""
        return self._infill is not None

    def close(self) -> None:
        """Ends the process that runs requests' own templates, if any, and the media loaders."""
        if self._request_templates is not None:
            self._request_templates.close()
        for reader in (self._images, self._document_texts):
            if reader is not None:
                reader.close()

    def render_chat(
        self,
        messages: object,
        rendering: ChatRendering = _DEFAULT_RENDERING,
        *,
        truncation: Truncation | None = None,
    ) -> Prompt:
        """Renders a chat. `messages` is the unchecked value of the request."""
        # The template writes the special tokens itself.
        special = rendering.add_special_tokens
        marked, images = self._render(messages, rendering)
        if not images:
            return self._encode(
                marked, add_special_tokens=special, truncation=truncation, param="messages"
            )
        prompt = self._encode(marked, add_special_tokens=special, truncation=None, param="messages")
        num_tokens = len(prompt.token_ids)
        if (
            truncation is not None
            and num_tokens > truncation.within(self._max_model_len).max_tokens
        ):
            raise InvalidRequest(
                f"must be >= {num_tokens}, the length of this chat: "
                "a chat with pictures or sounds is not cut",
                field="truncate_prompt_tokens",
            )
        assert self._images is not None
        placed = place_images(images, prompt.token_ids, self._images, self._tokenizer)
        return replace(prompt, images=placed)

    def encode_chat(
        self,
        messages: object,
        rendering: ChatRendering = _DEFAULT_RENDERING,
        *,
        check: Callable[[str], None] | None = None,
    ) -> tuple[str, list[int]]:
        """Returns text and token ids of a chat like `render_chat`, but does not check the model's
        limits.

        `check` may raise an error for the text before it is tokenized.
        """
        marked, _ = self._render(messages, rendering)
        if check is not None:
            check(marked.text)
        return marked.text, self._token_ids(marked, rendering.add_special_tokens)

    def _render(
        self, messages: object, rendering: ChatRendering
    ) -> tuple[MarkedText, list[PreparedImage]]:
        normalised = normalise_messages(messages, self._readable)
        media = collect_media(normalised)
        if media and self._document_texts is not None:
            normalised = self._document_texts.insert_texts(normalised, media)
            media = collect_media(normalised)
        template = self._template_for(rendering, normalised)
        shaped = shape_messages(normalised, template)
        if rendering.tools and not template.capabilities.tools:
            raise InvalidRequest(": this model's chat template has no tools", field="tools")
        variables = template_variables(rendering, template)
        is_unfinished = rendering.continue_final_message
        by_part = [] if self._images is None or not media else self._images.prepared(media)
        images = [image for images in by_part for image in images]
        if images:
            shaped = repeat_media_parts(shaped, [len(each) for each in by_part])
        marked = template.write_chat(
            shaped, tools=rendering.tools, variables=variables, is_unfinished=is_unfinished
        )
        if self._images is None or not images:
            return marked, []
        images = self._images.numbered(images)
        return insert_image_texts(marked, images, self._images.placeholders, self._marks), images

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
                "this model has no chat template and cannot chat; "
                "send its prompt as text to /v1/completions",
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
        """Encodes a text. `param` is the path of the text in the request, for errors."""
        return self._encode(
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
            prompt_ids = truncation.within(self._max_model_len).cut_token_ids(prompt_ids, 0)
        return self._make_prompt(
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
        """Makes a prompt after which the model writes the text between `prefix` and `suffix`.

        Control tokens that a `str` spells are encoded as text.
        """
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
        prompt = self._make_prompt(
            self._tokenizer.decode(token_ids, skip_special_tokens=False), token_ids, param
        )
        return replace(prompt, end_token_ids=self._infill.end_token_ids)

    def encode_output(self, text: str, *, param: str) -> list[int]:
        """Returns the tokens of a text that the model may write. Control tokens in it are text.

        Raises InvalidRequest if the text is longer than a prompt may be.
        """
        plain = MarkedText(text, ())
        prompt = self._encode(plain, add_special_tokens=False, truncation=None, param=param)
        return prompt.token_ids

    def _check_token_ids(self, token_ids: Sequence[int], param: str) -> None:
        last_id = self._vocab_size - 1
        for position, token_id in enumerate(token_ids):
            if not 0 <= token_id <= last_id:
                path = f"{param}[{position}]"
                raise InvalidRequest(
                    f"must be a token id from 0 to {last_id}, given {token_id}", field=path
                )

    def _encode(
        self,
        text: str | MarkedText,
        *,
        add_special_tokens: bool,
        truncation: Truncation | None,
        param: str,
    ) -> Prompt:
        """Control tokens spelled in a plain `str` are encoded as control tokens; in `MarkedText`
        only the marked spans are.
        """
        num_chars = len(text if isinstance(text, str) else text.text)
        if truncation is not None:
            truncation = truncation.within(self._max_model_len)
            plain = text if isinstance(text, str) else text.text
            begin, end = self._find_span_to_encode(plain, truncation)
            text = text[begin:end] if isinstance(text, str) else text.cut(begin, end)
            num_chars = end - begin
        if num_chars > self._max_chars:
            # Tokenising many megabytes takes seconds, so a text that cannot fit is refused before.
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
            token_ids = truncation.cut_token_ids(token_ids, num_added)
            text = self._tokenizer.decode(token_ids[num_added:], skip_special_tokens=False)
            if without_spelled is not None:
                begin, end = truncation.span_of_text(len(without_spelled), len(text))
                without_spelled = without_spelled[begin:end]
        prompt = self._make_prompt(text, token_ids, param)
        return prompt if without_spelled is None else replace(prompt, text_to_parse=without_spelled)

    def _check_beginning(self, text: str, param: str) -> None:
        """Refuses a text that is far too long after tokenising only its beginning, piece by
        piece.
        """
        if len(text) <= _PLAIN_CHARS_PER_TOKEN * self._max_model_len:
            return
        num_tokens = 0
        for begin in range(0, len(text), _PIECE_CHARS):
            num_tokens += len(
                self._tokenizer.encode(text[begin : begin + _PIECE_CHARS], add_special_tokens=False)
            )
            num_tokens -= self._longest_token_bytes  # cutting a token may have added this many
            if num_tokens > self._max_model_len:
                raise self._too_many_characters(len(text), param)

    def _find_span_to_encode(self, text: str, truncation: Truncation) -> tuple[int, int]:
        """Returns a span with more tokens than the truncation leaves, so that few are made."""
        num_chars = _PLAIN_CHARS_PER_TOKEN * truncation.max_tokens + _PIECE_CHARS
        enough_tokens = 2 * truncation.max_tokens + self._longest_token_bytes
        while num_chars < min(len(text), self._max_chars):
            begin, end = truncation.span_of_text(len(text), num_chars)
            token_ids = self._tokenizer.encode(text[begin:end], add_special_tokens=False)
            if len(token_ids) > enough_tokens:  # the cut is far from the remaining tokens
                return begin, end
            num_chars *= 4
        return truncation.span_of_text(len(text), self._max_chars)

    def _num_added_before(self, token_ids: list[int]) -> int:
        """Returns the number of tokens that the tokenizer puts before every text."""
        added = self._tokenizer.encode("", add_special_tokens=True)
        return len(added) if token_ids[: len(added)] == added else 0

    def _make_prompt(self, text: str, token_ids: list[int], param: str) -> Prompt:
        if not token_ids:
            raise InvalidRequest("must not give an empty prompt", field=param)
        if len(token_ids) + self._num_output_tokens > self._max_model_len:
            raise too_many_tokens(len(token_ids), max_model_len=self._max_model_len, field=param)
        if max(token_ids) >= self._vocab_size:
            token = self._tokenizer.token_text(max(token_ids))
            raise InvalidRequest(
                f"holds {token!r}, a token that the model does not have", field=param
            )
        return Prompt(text, token_ids)

    def _too_many_characters(self, num_chars: int, param: str) -> PromptTooLong:
        return too_many_characters(num_chars, max_model_len=self._max_model_len, field=param)
