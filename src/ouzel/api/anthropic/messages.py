"""Reads requests to POST /messages, in Anthropic's form, and begins their answers."""

import secrets
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from msgspec.structs import replace
from starlette.types import ASGIApp

from ouzel.api.anthropic.answer import MessageAnswer
from ouzel.api.anthropic.hosted_message import HostedMessage
from ouzel.api.anthropic.hosted_tools import find_hints, read_hosted
from ouzel.api.anthropic.message_object import STREAM_EVENTS, AnsweredBlock, MessageObject
from ouzel.api.anthropic.named_events import NAMED_EVENTS
from ouzel.api.anthropic.reading import decode_messages, read_messages
from ouzel.api.anthropic.request import MessagesRequest
from ouzel.api.anthropic.threads import (
    HeldConversation,
    HeldConversations,
    ThreadContinue,
    ThreadCreate,
    find_continued_id,
    renumber_error,
    start_conversation,
)
from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.dialect import Prepared
from ouzel.api.http.hosted_chat import HostedChat
from ouzel.config import LimitsConfig
from ouzel.errors import ContextLengthExceeded, InvalidRequest
from ouzel.generation import GenerationOptions, GenerationRequest, Prompt, ServedModel, accept
from ouzel.responses.hosted.kinds import NO_HOSTED_KINDS, HostedKinds
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.offered_tools import HostedOffer


class Messages:
    """Reads the requests of one API key."""

    parse = staticmethod(parse_object)

    def __init__(
        self,
        model: ServedModel,
        limits: LimitsConfig,
        conversations: HeldConversations,
        key_id: str | None,
        kinds: HostedKinds = NO_HOSTED_KINDS,
    ) -> None:
        """`kinds` are the tools that this server runs."""
        self._kinds = kinds
        self._model = model
        self._limits = limits
        self._conversations = conversations
        self._key_id = key_id

    def prepare(self, fields: JsonObject, arrival_s: float) -> Prepared | HostedChat:
        previous_id = find_continued_id(fields)
        if previous_id is None:
            return self._prepare(fields, arrival_s, None)
        held = self._conversations.find(previous_id, self._key_id)
        whole = held.body(fields)
        try:
            return self._prepare(whole, arrival_s, held)
        except InvalidRequest as error:
            raise renumber_error(error, held.num_messages) from error

    def _prepare(
        self, fields: JsonObject, arrival_s: float, held: HeldConversation | None
    ) -> Prepared | HostedChat:
        """Reads the body of a whole conversation. `held` is the stored beginning of it, if any."""
        body = decode_messages(fields, MessagesRequest, self._model)
        message_id = f"msg_{secrets.token_hex(12)}"
        on_end = (
            None if body.thread is None else self._make_hold(message_id, body.thread, fields, held)
        )
        toolset = read_hosted(body.mcp_servers or (), body.tools or (), self._kinds)
        offer = HostedOffer(hints=find_hints(self._kinds))
        if toolset.entries:
            # The choice among the tools is checked when they are open.
            early = replace(body, tool_choice=None)
            read = read_messages(early, self._model, self._limits, toolset, offer)
            message = HostedMessage(
                body=body,
                model=self._model,
                limits=self._limits,
                kinds=self._kinds,
                toolset=toolset,
                message_id=message_id,
                arrival_s=arrival_s,
                on_end=on_end,
                accept=self._accept,
            )
            return HostedChat(
                kinds=self._kinds,
                entries=toolset.entries,
                begin=message.begin,
                is_offered=toolset.is_offered,
                items=[{"sources": read.history.sources, "named_in": read.history.named_in}],
            )
        read = read_messages(body, self._model, self._limits, offer=offer)
        edits = read.edit_context(self._model)
        accepted = self._accept(
            body, read.chat.options, read.prompt(self._model), message_id, arrival_s
        )
        return [accepted], MessageAnswer(message_id, body, self._model, edits, on_end)

    def _accept(
        self,
        body: MessagesRequest,
        options: GenerationOptions,
        prompt: Prompt,
        message_id: str,
        arrival_s: float,
    ) -> GenerationRequest:
        try:
            return accept(options, prompt, self._model, request_id=message_id, arrival_s=arrival_s)
        except ContextLengthExceeded as error:
            num_tokens, most = len(prompt.token_ids), self._model.engine.info.max_model_len
            excess = (
                f"input length and `max_tokens` exceed context limit: {num_tokens} + "
                f"{body.max_tokens} > {most}"
            )
            advice = "decrease input length or `max_tokens` and try again"
            raise ContextLengthExceeded(f"{excess}, {advice}", param="max_tokens") from error
        except InvalidRequest as error:
            if error.param != "thinking_token_budget":
                raise
            raise error.at("thinking.budget_tokens") from error

    def _make_hold(
        self,
        message_id: str,
        thread: ThreadCreate | ThreadContinue,
        fields: JsonObject,
        held: HeldConversation | None,
    ) -> Callable[[Sequence[AnsweredBlock]], None]:
        """Returns a function that holds the conversation under the message's id.

        The answer calls it with the complete blocks.
        """
        conversation = (
            start_conversation(fields, self._key_id) if held is None else held.extend(fields)
        )
        self._conversations.check_room(conversation)
        previous_id = thread.previous_message_id if isinstance(thread, ThreadContinue) else None

        def hold(blocks: Sequence[AnsweredBlock]) -> None:
            said = [{"role": "assistant", "content": blocks}] if blocks else []
            self._conversations.add(
                message_id, conversation.with_messages(said), previous_id=previous_id
            )

        return hold


# conversations by engine
_conversations: WeakKeyDictionary[object, HeldConversations] = WeakKeyDictionary()


def _endpoint(services: Services) -> ASGIApp:
    """Makes an endpoint. Conversations are held as long as the engine runs.

    A model and its adapters share one engine and one limit of bytes.
    """
    conversations = _conversations.setdefault(services.model.engine, HeldConversations())

    def dialect_of_key(key_id: str | None) -> Messages:
        return Messages(
            services.model,
            services.limits,
            conversations,
            key_id,
            services.shared.hosted.for_messages(),
        )

    return services.make_generating_by_key(dialect_of_key, conversations.num_held_bytes)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/messages",
        prefixes=PREFIXES,
        summary="Answers a chat as Anthropic's Messages API does.",
        endpoint=_endpoint,
        choice=choose_for("generate"),
        bodies=(MessagesRequest,),
        answers=(MessageObject,),
        chunks=STREAM_EVENTS,
        words="anthropic",
        event_framing=NAMED_EVENTS,
    ),
)
