"""A chat template that reads texts only shows pictures as lines, and only the chat's own."""

from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.marked_text import StandIns
from ouzel.prompts.messages import Message
from ouzel.prompts.spellings import Spellings

PLACEHOLDER = "(<image>./</image>)"
TEXTS = "\n{% for m in messages %}[{{ m.role }}]{{ m.content + ' ' }}{% endfor %}"
PARTS = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{{ part.text if part.type == 'text' else '<pic>' }}{% endfor %}"
    "{% endif %}{% endfor %}"
)
MARKS = Spellings((PLACEHOLDER, "<image>", "</image>"))


def make(source: str) -> ChatTemplate:
    return ChatTemplate({"default": source}, {}).with_lines_of_pictures(PLACEHOLDER)


def user(*parts: str | None) -> Message:
    """Returns a message with these texts; None stands for a picture."""
    content = [
        {"type": "image"} if part is None else {"type": "text", "text": part} for part in parts
    ]
    return {"role": "user", "content": content}


def test_pictures_are_lines_between_the_texts_of_their_message() -> None:
    chat: list[Message] = [user("a", None, None, "b"), {"role": "assistant", "content": "c"}]
    chat.append(user(None))

    shown = make(TEXTS).render(chat)

    assert shown == (
        f"\n[user]a\n{PLACEHOLDER}\n{PLACEHOLDER}\nb [assistant]c [user]{PLACEHOLDER} "
    )


def test_a_chat_of_texts_is_rendered_as_before() -> None:
    chat: list[Message] = [{"role": "user", "content": f"a {PLACEHOLDER}"}]
    assert make(TEXTS).render(chat) == ChatTemplate({"default": TEXTS}, {}).render(chat)


def test_a_template_that_reads_parts_shows_pictures_itself() -> None:
    assert make(PARTS).render([user("a", None)]) == "a<pic>"


def test_a_placeholder_that_a_client_spells_is_text() -> None:
    stand_ins = StandIns(MARKS)
    marking = make(TEXTS).with_stand_ins(stand_ins, StandIns(Spellings(())))

    marked = marking.write_chat([user(f"see {PLACEHOLDER}", None, "<image>")])

    assert marked.text == f"\n[user]see {PLACEHOLDER}\n{PLACEHOLDER}\n<image> "
    begin = marked.text.index(PLACEHOLDER, marked.text.index(PLACEHOLDER) + 1)
    assert marked.spans == ((begin, begin + len(PLACEHOLDER)),)
