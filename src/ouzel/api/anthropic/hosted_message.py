"""Begins a message whose tools this server runs, and renders the prompts of its later turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from ouzel.api.anthropic.answer import MessageAnswer
from ouzel.api.anthropic.hosted_tools import HostedToolset, find_hints
from ouzel.api.anthropic.hosted_writing import HostedWriting
from ouzel.api.anthropic.message_object import AnsweredBlock
from ouzel.api.anthropic.reading import ReadMessages, read_messages
from ouzel.api.anthropic.request import MessagesRequest
from ouzel.api.anthropic.tools import relax_choice
from ouzel.api.http.hosted_chat import BegunChat, ShownCalls
from ouzel.config import LimitsConfig
from ouzel.generation import GenerationOptions, GenerationRequest, Prompt, ServedModel
from ouzel.hosted_chats.called_turn import CalledTurn
from ouzel.hosted_chats.tool_turns import TurnRules
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.later_turn import limit_later_turn
from ouzel.responses.hosted.opened_tools import OpenedTools
from ouzel.wire.offered_tools import ClientName

Accept = Callable[[MessagesRequest, GenerationOptions, Prompt, str, float], GenerationRequest]
OnEnd = Callable[[Sequence[AnsweredBlock]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedMessage:
    body: MessagesRequest
    model: ServedModel
    limits: LimitsConfig
    kinds: HostedKinds
    toolset: HostedToolset
    message_id: str
    arrival_s: float
    on_end: OnEnd | None
    accept: Accept

    def begin(self, tools: OpenedTools) -> BegunChat:
        """Renders the first prompt; `tools` are open."""
        read = self._read(self.body, tools)
        edits = read.edit_context(self.model)
        prompt = read.prompt(self.model)
        accepted = self._accept(read.chat.options, prompt)
        relaxed = replace(self.body, tool_choice=relax_choice(self.body.tool_choice))
        later = self._read(relaxed, tools).chat.options
        names = read.chat.tool_names

        def find_name(model_name: str) -> ClientName | None:
            name = names.for_client(model_name)
            return name if name in tools.names else None

        def make_request(
            turns: Sequence[CalledTurn], *, num_used_tokens: int, may_call: bool
        ) -> GenerationRequest | None:
            options = limit_later_turn(
                later, names, tools.names, num_used_tokens=num_used_tokens, may_call=may_call
            )
            if options is None:
                return None
            further = [message for turn in turns for message in turn.messages()]
            return self._accept(options, read.prompt(self.model, further))

        writing = HostedWriting(find_name, tools.sources)
        rules = TurnRules(
            make_request=make_request,
            names=names,
            runs_beside_clients=True,
            pauses=True,
            max_uses=self.toolset.max_uses,
        )
        answer = MessageAnswer(
            self.message_id, self.body, self.model, edits, self.on_end, hosted=writing
        )
        return BegunChat(accepted, rules, ShownCalls(answer))

    def _read(self, body: MessagesRequest, tools: OpenedTools) -> ReadMessages:
        offer = msgspec.structs.replace(
            tools.offer, types=frozenset(), hints=find_hints(self.kinds)
        )
        return read_messages(body, self.model, self.limits, self.toolset, offer)

    def _accept(self, options: GenerationOptions, prompt: Prompt) -> GenerationRequest:
        return self.accept(self.body, options, prompt, self.message_id, self.arrival_s)
