"""A file is read only if it holds a chat, and saving a chat overwrites no other file."""

import json
from pathlib import Path

import pytest

from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands.saved_chat import SavedChat, read_chat, write_chat
from ouzel.terminal_chat.conversation import Conversation

HEAD = {"format": "ouzel chat", "version": 1}


def read(directory: Path, content: bytes) -> SavedChat:
    path = directory / "chat.json"
    path.write_bytes(content)
    return read_chat(str(path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b'{"messages": [], "system": "\xff"}',
        b"[" * 100_000,
        b'{"messages": [{"role": "user"}]}',
        b'{"messages": [], "settings": {"messages": []}}',
        b'{"messages": [], "settings": {"model": "another"}}',
    ],
)
def test_a_file_that_is_no_saved_chat_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="must be a file of /save"):
        read(tmp_path, content)


def test_a_text_part_without_a_text_is_empty(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": [{"type": "text"}]}, {"role": "user", "content": None}]
    conversation = Conversation()
    conversation.replace(
        read(tmp_path, json.dumps({**HEAD, "messages": messages}).encode()).messages
    )
    assert [conversation.text_at(at) for at in range(2)] == ["", ""]


def test_a_link_stays_one_and_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("chat.json")
    write_chat(str(link), SavedChat([]))
    assert link.is_symlink()
    assert (tmp_path / "chat.json").stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 2
