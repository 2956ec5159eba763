"""Conversations are imported from three formats and exported; hostile files do no harm."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect

from tests.playground.chromium import User
from tests.playground.conversation_files import (
    CHATGPT,
    HOSTILE,
    LAST,
    OPEN_WEBUI,
    READ,
    Json,
    gpt_message,
    gpt_node,
)
from tests.playground.stored import records, wait_until_stored
from tests.playground.test_hostile_texts import ATTEMPTS, untouched

_CONTENTS = """async () => {
  const database = await import("/playground/modules/storage/database.js");
  const records = await database.all();
  const read = async ({ key, title, updated, isPinned, isNamed }) =>
    ({ title, updated, isPinned, isNamed, content: await database.content(key) });
  const all = await Promise.all(records.map(read));
  return all.sort((one, other) => (one.title < other.title ? -1 : 1));
}"""
# Fills the browser with trees of messages that a small generator of numbers makes.
_FILL = """async ([seed, texts]) => {
  const { Library } = await import("/playground/modules/storage/library.js");
  const { message } = await import("/playground/modules/chat/conversation.js");
  let state = seed;
  const below = (limit) => (state = (state * 48271) % 2147483647) % limit;
  const text = () => texts[below(texts.length)];
  const said = () => {
    if (below(2)) return message("user", { content: text(),
      images: below(4) ? [] : [{ name: text(), url: "data:image/png;base64,iVBORw0KGgo=" }],
      files: below(4) ? [] : [{ id: `file-${below(9)}`, name: text(), size: 3, use: "model" }] });
    const call = { id: "call_1", name: "clock", arguments: text() };
    return message("assistant", { content: text(), reasoning: text(), model: text(),
      finishReason: "stop", toolCalls: below(4) ? [] : [call],
      hosted: below(4) ? [] : [{ type: "mcp_call", server_label: text(), name: text(),
        arguments: text(), output: text(), deep: [{ very: { deep: [null, 1.5, true] } }] }],
      figures: { timeToFirstToken: 1, tokensPerSecond: 2, completionTokens: 3,
        promptTokens: null, cachedTokens: null, isCounted: false },
      tokens: below(4) ? null : [{ text: text(), logprob: -0.5, alternatives: [] }] });
  };
  const given = Array.from({ length: 30 }, (_, number) => {
    const nodes = Array.from({ length: 1 + below(12) }, (_, index) =>
      ({ id: index + 1, parent: below(3) ? index || null : null, message: said() }));
    return { title: `${number} ${text()}`.replace(/\\s+/g, " ").trim(), isNamed: below(2) === 0,
      updated: 1e12 + below(1e9), isPinned: below(2) === 0, nodes,
      activeLeaf: nodes[below(nodes.length)].id };
  });
  const library = new Library(null, { onChange: () => {}, onTrouble: console.error });
  await library.add(given);
  library.records.tellAll();
}"""


def choose(user: User, *files: tuple[str, Json | bytes]) -> str:
    """Imports files, and returns the page's report about them."""
    page = user.page
    if page.locator("dialog").count() == 0:
        page.click("#manage")
    payloads = [
        FilePayload(
            name=name,
            mimeType="application/json",
            buffer=content if isinstance(content, bytes) else json.dumps(content).encode(),
        )
        for name, content in files
    ]
    state = page.locator(".manage-state")
    state.evaluate("node => node.replaceChildren()")
    page.set_input_files("#import-picker", payloads)
    expect(state).to_contain_text("imported")
    return state.inner_text()


def open_conversation(user: User, title: str) -> None:
    user.page.keyboard.press("Escape")
    user.page.locator("#conversations .title", has_text=title).click()
    expect(user.page.locator("#title")).to_have_text(title)


def test_chatgpt_conversations_keep_branches_times_and_models(user: User) -> None:
    mapping = {"q": CHATGPT["mapping"]["q"]}  # type: ignore[index]
    second = {**CHATGPT, "title": "Second", "mapping": mapping}
    said = choose(
        user,
        ("conversations-000.json", [CHATGPT]),
        ("conversations-001.json", [second, {"title": "No messages", "mapping": {}}]),
    )
    assert "2 conversations were imported." in said
    assert "1 was not understood (No messages): it has no messages." in said
    [fruit, _] = user.page.evaluate(_CONTENTS)
    assert (fruit["title"], fruit["updated"]) == ("Fruit", 1_700_000_100_500)
    open_conversation(user, "Fruit")
    assert "print('```')" in user.texts[1] and "Pears" in user.texts[1]
    assert "gpt-5" in user.message(1).inner_text()
    user.page.locator(".message.assistant .reasoning summary").click()
    assert "Pears are in season." in user.message(1).inner_text()
    user.click("Branch before", user.message(1))
    assert user.texts[1:] == ["Apples", "(picture: file-service://x)\n\nAnd this?"]
    user.ask("and on")  # an imported conversation goes on in this browser
    wait_until_stored(user, 6)
    assert all(record["isOnServer"] is False for record in records(user))


def test_a_file_that_is_imported_again_makes_no_copies(user: User) -> None:
    other = {**CHATGPT, "conversation_id": "1", "title": "Other"}
    mapping: dict[str, object] = CHATGPT["mapping"]  # type: ignore[assignment]
    newer = {**other, "mapping": {**mapping, "q3": gpt_node("q3", "q2", None)}}
    longer = {**other, "mapping": {**mapping, "q4": LAST}}
    chats = [CHATGPT, other, OPEN_WEBUI]
    assert "3 conversations were imported." in choose(user, ("all.json", chats))
    open_conversation(user, "Weather")
    user.ask("It goes on.")
    wait_until_stored(user, 5)
    said = choose(user, ("all.json", [*chats, newer, longer]), ("again.json", [longer]))
    assert said.split("\n\n") == ["1 conversation was imported.", "5 were already there."]
    expect(user.page.locator("#conversations .title")).to_have_count(4)


def test_system_messages_become_the_system_prompt(user: User) -> None:
    system = gpt_message("system", "Answer in verse.")
    hidden = gpt_message(
        "system", "Secret", metadata={"is_visually_hidden_from_conversation": True}
    )
    nodes = {"sys": gpt_node("sys", None, system), "hidden": gpt_node("hidden", "sys", hidden)}
    chat: dict[str, object] = OPEN_WEBUI["chat"]  # type: ignore[assignment]
    files = [
        {**CHATGPT, "mapping": {**CHATGPT["mapping"], **nodes}},  # type: ignore[dict-item]
        {**OPEN_WEBUI, "chat": {**chat, "params": {"system": "Be brief."}}},
    ]
    choose(user, ("all.json", files))
    user.page.keyboard.press("Escape")
    user.open_settings()
    for title, prompt in (("Fruit", "Answer in verse."), ("Weather", "Be brief.")):
        open_conversation(user, title)
        expect(user.page.locator("#set-system")).to_have_value(prompt)


def test_open_webui_chats_keep_branches_reasoning_and_pins(user: User) -> None:
    assert "1 conversation was imported." in choose(user, ("chats.json", [OPEN_WEBUI]))
    expect(user.page.locator("#conversations .group")).to_have_text(["Pinned"])
    [record] = user.page.evaluate(_CONTENTS)
    assert record["updated"] == 1_700_000_000_000
    open_conversation(user, "Weather")
    user.expect_texts("Rain?", "Yes.")
    assert "llama3" in user.message(1).inner_text()
    user.click("Branch before", user.message(1))
    user.expect_texts("Rain?", "No.")
    user.page.locator(".message.assistant .reasoning summary").click()
    assert "It is <dry>." in user.message(1).inner_text()


@pytest.mark.parametrize("seed", [7, 1234, 998877])
def test_an_export_of_all_is_imported_as_it_was(user: User, tmp_path: Path, seed: int) -> None:
    page = user.page
    page.evaluate(_FILL, [seed, [*ATTEMPTS, "", "a\nb", "👋🏽 日本", "\u2028 \u202e \u0000 end"]])
    expect(page.locator("#conversations .title")).to_have_count(30)
    before = page.evaluate(_CONTENTS)
    page.click("#manage")
    with page.expect_download() as begun:
        page.get_by_role("button", name="Export all").click()
    begun.value.save_as(tmp_path / "all.json")
    expect(page.locator(".manage-state")).to_contain_text("30 conversations were exported.")
    page.get_by_role("button", name="Delete all").click()
    user.click("Delete them", page.locator("dialog").last)
    expect(page.locator("#conversations .title")).to_have_count(0)
    said = choose(user, ("all.json", (tmp_path / "all.json").read_bytes()))
    assert said == "30 conversations were imported."
    assert page.evaluate(_CONTENTS) == before
    untouched(user)


def test_an_exported_conversation_is_imported(user: User, tmp_path: Path) -> None:
    page = user.page
    user.ask("<think>hm</think>one")
    wait_until_stored(user, 2)
    page.get_by_role("button", name="Export <think>").click()
    with page.expect_download() as begun:
        user.click("JSON, with all branches", page.locator("dialog"))
    begun.value.save_as(tmp_path / "one.json")
    user.ask("two")  # the conversation goes on
    wait_until_stored(user, 4)
    page.click("#new")
    exported = ("one.json", (tmp_path / "one.json").read_bytes())
    assert choose(user, exported).split("\n\n") == [
        "0 conversations were imported.",
        "1 was already there.",
    ]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete <think>").click()
    expect(page.locator("#conversations .title")).to_have_count(0)
    assert choose(user, exported) == "1 conversation was imported."
    page.keyboard.press("Escape")
    copy = page.locator("#conversations .title[href*=local]")
    copy.click()
    expect(page.locator(".message")).to_have_count(2)
    user.expect_texts("<think>hm</think>one", "one")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_do_no_harm(user: User, name: str) -> None:
    said = choose(user, (name, HOSTILE[name]))
    user.page.keyboard.press("Escape")
    for index in range(len(user.titles)):
        user.page.locator("#conversations .title").nth(index).click()
        expect(user.page.locator(".message").first).to_be_visible()
    untouched(user)
    assert user.page.evaluate("({}).isAdmin === undefined && ({}).x === undefined")
    assert ("not understood" in said) == (name not in READ)


def test_messages_in_a_circle_are_all_kept(user: User) -> None:
    choose(user, ("circle.json", HOSTILE["circle"]))
    [record] = user.page.evaluate(_CONTENTS)
    nodes = record["content"]["nodes"]
    assert sorted(node["message"]["content"] for node in nodes) == ["one", "three", "two"]
    assert all(node["parent"] is None or node["parent"] < node["id"] for node in nodes)


def test_reasons_are_told_with_their_number(user: User) -> None:
    chats = [{**OPEN_WEBUI, "id": str(index), "title": f"chat {index}"} for index in range(250)]
    said = choose(
        user, ("chats.json", [*chats, 1, {"title": "bad"}]), ("x.txt", b"no"), ("y.txt", b"no")
    )
    assert said.split("\n\n") == [
        "250 conversations were imported.",
        "2 were not understood (#251 and others): there is no conversation in it.",
        "2 were not understood (x.txt and others): it is no JSON file.",
    ]


def test_an_imported_conversation_deletes_no_file_of_the_server(user: User) -> None:
    """A file may name files of the same person in another conversation."""
    deleted: list[str] = []
    user.page.on("request", lambda request: deleted.append(f"{request.method} {request.url}"))
    file = {"id": "file-of-somebody", "name": "a", "size": 1, "use": "model"}
    message = {"role": "user", "content": "x", "files": [file]}
    tree = {"nodes": [{"id": 1, "message": message}]}
    choose(user, ("own.json", {"title": "trap", "tree": tree}))
    user.page.get_by_role("button", name="Delete all").click()
    user.click("Delete them", user.page.locator("dialog").last)
    expect(user.page.locator("#conversations .title")).to_have_count(0)
    assert [each for each in deleted if each.startswith("DELETE")] == []
