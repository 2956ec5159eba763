"""Reads the chat of a request for an embedding, as vLLM has it: texts and pictures, one vector."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.api.openai.embedding_fields import InputField, VectorFields
from ouzel.api.openai.input_fields import refuse_fields_of_others
from ouzel.checkpoint.sentence_chats import SentenceChats
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import InvalidRequest
from ouzel.generation import ChatRendering, ServedModel
from ouzel.vectors import EncodedText
from ouzel.wire.chat_prompt import AddGenerationPrompt, ContinueFinalMessage, TemplateKwargs
from ouzel.wire.message_schema import Messages

# fields that only one of the two inputs allows, with this input
_GOES_WITH = {
    "prompt_name": ("input",),
    "task": ("input",),
    "truncate_prompt_tokens": ("input",),
    "truncate": ("input",),
    "add_generation_prompt": ("messages",),
    "continue_final_message": ("messages",),
    "chat_template_kwargs": ("messages",),
}
# values that change nothing beside the other input
_WITHOUT_EFFECT: dict[str, object] = {
    "truncate": False,
    "continue_final_message": False,
    "chat_template_kwargs": {},
}


class ChatOrInput(VectorFields, kw_only=True):
    """The two inputs of a request: texts or token ids, each with a vector, or one chat."""

    input: InputField | None = None
    messages: Messages | None = None
    chat_template_kwargs: TemplateKwargs = None
    add_generation_prompt: AddGenerationPrompt = None
    continue_final_message: ContinueFinalMessage = None
    add_special_tokens: Annotated[
        bool | None,
        Meta(
            description="Adds the tokenizer's special tokens around a text or a chat; around a "
            "chat also by default if the model's files say so."
        ),
    ] = None
    prompt_name: Annotated[
        str | None,
        Meta(
            description="The name of the model's prompt (query, document, ...) before every text."
        ),
    ] = None
    task: Annotated[
        str | None,
        Meta(
            description="The task of the texts (retrieval.query, ...), for models with an adapter "
            "for each task; the prompt of this name, too, unless `prompt_name` is given."
        ),
    ] = None


def check_inputs(fields: ChatOrInput) -> None:
    """Raises InvalidRequest unless the request has one input, and only fields that go with it."""
    if fields.input is None and fields.messages is None:
        raise InvalidRequest("is required, or messages", field="input")
    if fields.input is not None and fields.messages is not None:
        raise InvalidRequest("must not be given beside input", field="messages")
    names = {
        name
        for name, value in msgspec.structs.asdict(fields).items()
        if value not in (None, _WITHOUT_EFFECT.get(name))
    }
    refuse_fields_of_others("messages" if fields.input is None else "input", names, _GOES_WITH)


def encode_chat(fields: ChatOrInput, model: ServedModel, files: SentenceFiles) -> EncodedText:
    """Encodes the messages with their pictures. Raises InvalidRequest."""
    if model.renderer.chat_template is None:
        raise InvalidRequest(
            "must not be given: this model has no chat template; send texts as input",
            field="messages",
        )
    if files.lowers_case:
        raise InvalidRequest(
            "must not be given: this model reads texts in lower case; send them as input",
            field="messages",
        )
    chats = files.chats or SentenceChats()
    continues = fields.continue_final_message or False
    ends_open, special = fields.add_generation_prompt, fields.add_special_tokens
    defaults = dict(chats.template_kwargs)
    if ends_open is None and not continues:
        defaults["add_generation_prompt"] = chats.add_generation_prompt
    rendering = ChatRendering(
        template_kwargs=defaults | (fields.chat_template_kwargs or {}),
        add_generation_prompt=ends_open,
        continue_final_message=continues,
        add_special_tokens=chats.add_special_tokens if special is None else special,
    )
    prompt = model.renderer.render_chat(fields.messages, rendering)
    return EncodedText(prompt.token_ids, len(prompt.token_ids), images=prompt.images)
