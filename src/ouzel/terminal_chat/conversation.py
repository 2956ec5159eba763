"""A conversation has the messages so far, in the form in which the server gets them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any  # the JSON of items

from ouzel.terminal_chat.answer import Answer
from ouzel.terminal_chat.picture import Picture
from ouzel.terminal_chat.response_body import ITEMS

Message = dict[str, object]


class Conversation:
    def __init__(self) -> None:
        self.system = ""  # text of the system message before all others; "" for none
        self._messages: list[Message] = []

    @property
    def messages(self) -> list[Message]:
        """Returns all messages, the system message first."""
        system: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, *self._messages]

    @property
    def exchanged(self) -> Sequence[Message]:
        """Returns the messages without the system message."""
        return tuple(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def cut(self, length: int) -> None:
        """Removes all messages after the first `length` messages."""
        del self._messages[length:]

    def replace(self, messages: Sequence[Message]) -> None:
        self._messages = list(messages)

    def add_user(self, text: str, pictures: Sequence[Picture] = ()) -> None:
        content: object = text
        if pictures:
            parts = [picture.content_part() for picture in pictures]
            content = [*parts, {"type": "text", "text": text}] if text else parts
        self._messages.append({"role": "user", "content": content})

    def add_answer(self, answer: Answer) -> None:
        self._messages.append(answer.message())

    def add_tool_result(self, call_id: str, result: str) -> None:
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": result})

    def add_approvals(self, approvals: Mapping[str, bool]) -> None:
        """Adds the user's decisions about calls, by the ids of their approval requests."""
        self._last_items().extend(
            {
                "type": "mcp_approval_response",
                "approval_request_id": request_id,
                "approve": is_given,
            }
            for request_id, is_given in approvals.items()
        )

    def withdraw_approvals(self, called: Collection[str]) -> None:
        """Turns approvals of calls that have not begun into refusals: the user has stopped them.

        `called` are the ids of the approval requests whose calls have begun.
        """
        for item in self._last_items():
            is_open = item.get("approval_request_id") not in called
            if item["type"] == "mcp_approval_response" and item["approve"] and is_open:
                item.update(approve=False, reason="The user stopped this call.")

    def _last_items(self) -> list[dict[str, Any]]:
        """Returns the items of the last answer that has items; they may be changed."""
        lists = (message.get(ITEMS) for message in reversed(self._messages))
        return next((items for items in lists if isinstance(items, list)), [])

    def last_user_at(self) -> int | None:
        """Returns the index of the user's last message; None if there is none."""
        places = [at for at, message in enumerate(self._messages) if message["role"] == "user"]
        return places[-1] if places else None

    def text_at(self, at: int) -> str:
        """Returns the text of a message, without its images."""
        content = self._messages[at]["content"]
        if not isinstance(content, list):
            return str(content or "")
        return "\n".join(part.get("text", "") for part in content if part.get("type") == "text")
