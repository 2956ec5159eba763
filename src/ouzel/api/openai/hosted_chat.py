"""Reads chat completions whose tools this server runs, as the operator allows with --chat-tools.

The calls are not shown: a client of chats would try to run them. The next chat of a client has only
the texts of the answer, so the model does not read the results again. For the same reason calls do
not run in a turn that also calls tools of the client.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec.structs import replace

from ouzel.api.endpoint.chat_archive import ChatArchive
from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.dialect import Prepared
from ouzel.api.http.hosted_chat import BegunChat, HostedChat
from ouzel.api.openai.chat import ChatCompletions, accept_chat
from ouzel.api.openai.chat_answer import ChatCompletion, ChatCompletionChunk
from ouzel.api.openai.kept_chat import ChatToStore, keep_chat
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationRequest, ServedModel, accept
from ouzel.hosted_chats.called_turn import CalledTurn
from ouzel.hosted_chats.tool_turns import TurnRules
from ouzel.responses.hosted.kinds import Entry, HostedKinds
from ouzel.responses.hosted.later_turn import limit_later_turn, relax_choice
from ouzel.responses.hosted.opened_tools import OpenedTools
from ouzel.responses.hosted.opening import refuse_same_labels
from ouzel.wire.chat import Chat, read_chat
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, decode_object, parse_object
from ouzel.wire.offered_tools import HostedOffer
from ouzel.wire.validation_errors import show_value

_SEARCHES = (
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
)
_HINT = "the operator turns it on with --chat-tools requested"
_HINTS = dict.fromkeys(("mcp", *_SEARCHES), _HINT)


class HostingChatCompletions:
    parse = staticmethod(parse_object)

    def __init__(
        self, model: ServedModel, limits: LimitsConfig, archive: ChatArchive, kinds: HostedKinds
    ) -> None:
        self._plain = ChatCompletions(model, limits, archive, _HINTS)
        self._model = model
        self._limits = limits
        self._archive = archive
        self._kinds = kinds
        types = kinds.types.intersection(("mcp", *_SEARCHES))
        self._types = types if kinds.takes_chat_entries else frozenset[str]()

    def prepare(self, fields: JsonObject, arrival_s: float) -> Prepared | HostedChat:
        requested = self._list_requested(fields)
        if not requested and not self._kinds.chat_entries:
            return self._plain.prepare(fields, arrival_s)
        request = decode_object(fields, ChatCompletionRequest)
        # The functions are known when the tools are open; the choice among them is checked then.
        offer = HostedOffer(self._types, hints=_HINTS)
        early = replace(request, tool_choice=None)
        chat = read_chat(early, self._model, self._limits, offer)
        obstacle = _find_obstacle(request, chat)
        if obstacle is not None and requested:
            raise InvalidRequest(
                "must not be given beside tools that this server runs", field=obstacle
            )
        if not requested and (obstacle or request.tool_choice == "none" or chat.options.form):
            return self._plain.prepare(fields, arrival_s)
        for path, entry in requested:
            kind = self._kinds.find(entry["type"])
            assert kind is not None
            kind.check(entry, path)
        refuse_same_labels(requested)
        return HostedChat(
            kinds=self._kinds,
            entries=[*requested, *self._list_common(requested)],
            begin=partial(self._begin, request, fields, arrival_s),
            has_own_template=request.chat_template is not None,
        )

    def _list_requested(self, fields: JsonObject) -> list[Entry]:
        """Returns the entries of `tools` that this server runs, which need no approval."""
        tools = fields.get("tools")
        entries: list[Entry] = []
        for position, tool in enumerate(tools if isinstance(tools, list) else ()):
            if not isinstance(tool, dict) or tool.get("type") not in self._types:
                continue
            path = f"tools[{position}]"
            entries.append((path, _without_approval(tool, path) if tool["type"] == "mcp" else tool))
        return entries

    def _list_common(self, requested: Sequence[Entry]) -> list[Entry]:
        """Returns the entries of every chat, unless the request has them itself."""
        labels = {tool.get("server_label") for _, tool in requested}
        searches = any(tool["type"] in _SEARCHES for _, tool in requested)
        return [
            ("tools", entry)
            for entry in self._kinds.chat_entries
            if not (searches if entry["type"] == "web_search" else entry["server_label"] in labels)
        ]

    def _begin(
        self,
        request: ChatCompletionRequest,
        fields: JsonObject,
        arrival_s: float,
        tools: OpenedTools,
    ) -> BegunChat:
        offer = msgspec.structs.replace(tools.offer, types=self._types, hints=_HINTS)
        chat = read_chat(request, self._model, self._limits, offer)
        answer, accepted = accept_chat(request, chat, self._model, arrival_s, tools.sources)
        relaxed = replace(request, tool_choice=relax_choice(request.tool_choice))
        later = _LaterTurns(
            relaxed,
            read_chat(relaxed, self._model, self._limits, offer),
            self._model,
            tools,
            accepted,
        )
        return BegunChat(
            accepted,
            TurnRules(
                make_request=later.make_request,
                names=chat.tool_names,
                runs_beside_clients=False,
                pauses=False,
            ),
            keep_chat(answer, ChatToStore(answer, request, accepted, fields), self._archive),
        )


@dataclass(frozen=True, slots=True)
class _LaterTurns:
    request: ChatCompletionRequest
    chat: Chat
    model: ServedModel
    tools: OpenedTools
    first: GenerationRequest

    def make_request(
        self, turns: Sequence[CalledTurn], *, num_used_tokens: int, may_call: bool
    ) -> GenerationRequest | None:
        chat, messages = self.chat, self.request.messages
        options = limit_later_turn(
            chat.options,
            chat.tool_names,
            self.tools.names,
            num_used_tokens=num_used_tokens,
            may_call=may_call,
        )
        if options is None:
            return None
        assert isinstance(messages, list)
        further = [message for turn in turns for message in turn.messages()]
        prompt = self.model.renderer.render_chat(
            [*messages, *further], chat.rendering, truncation=chat.truncation
        )
        return accept(
            options,
            prompt,
            self.model,
            request_id=self.first.request_id,
            arrival_s=self.first.arrival_s,
        )


def _without_approval(entry: JsonObject, path: str) -> JsonObject:
    approval = entry.get("require_approval")
    if approval not in (None, "never"):
        limit = 'must be "never": chats have no approvals (use /v1/responses)'
        raise InvalidRequest(
            f"{limit}, given {show_value(approval)}", field=f"{path}.require_approval"
        )
    return {**entry, "require_approval": "never"}


def _find_obstacle(request: ChatCompletionRequest, chat: Chat) -> str | None:
    """Returns a field beside which this server runs no tools; None if there is none."""
    if chat.options.choosing.best_of > 1:
        return "n" if request.n is not None and request.n > 1 else chat.options.choosing.width_param
    obstacles = {
        "functions": request.functions is not None,
        "function_call": request.function_call is not None,
        "echo": bool(request.echo),
        "continue_final_message": bool(request.continue_final_message),
        "add_generation_prompt": request.add_generation_prompt is False,
        "prompt_logprobs": request.prompt_logprobs is not None,
    }
    return next((name for name, is_given in obstacles.items() if is_given), None)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/chat/completions",
        prefixes=PREFIXES,
        summary="Answers a chat; with LMI's profile in LMI's form.",
        endpoint=lambda services: services.make_generating(
            HostingChatCompletions(
                services.model, services.limits, services.chats, services.shared.hosted
            )
        ),
        choice=choose_for("generate"),
        bodies=(ChatCompletionRequest,),
        answers=(ChatCompletion,),
        chunks=(ChatCompletionChunk,),
    ),
)
