"""Describes a turn whose calls this server has run, and writes it as messages of a chat."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.wire.decode import JsonObject


@dataclass(frozen=True, slots=True)
class EndedCall:
    call_id: str
    model_name: str
    arguments: str  # JSON, or any text if the model made a mistake
    item: AnyHostedItem

    @property
    def output(self) -> str:
        """Returns the text that the model reads."""
        exchange = self.item.exchange()
        return "" if exchange is None else exchange.output


@dataclass(frozen=True, slots=True)
class CalledTurn:
    text: str
    reasoning: str
    calls: Sequence[EndedCall]

    @property
    def num_chars(self) -> int:
        return len(self.text) + len(self.reasoning) + sum(len(call.output) for call in self.calls)

    def messages(self) -> Iterator[JsonObject]:
        """Yields the turn, and the results of its calls, as messages in OpenAI's form."""
        message: JsonObject = {"role": "assistant", "content": self.text}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.model_name, "arguments": call.arguments},
            }
            for call in self.calls
        ]
        yield message
        for call in self.calls:
            yield {
                "role": "tool",
                "tool_call_id": call.call_id,
                "name": call.model_name,
                "content": call.output,
            }
