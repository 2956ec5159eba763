"""References to notes and the notes lead to each other."""

from playwright.sync_api import expect

from tests.playground.markdown.drawing import Drawing

TEXT = """First[^b] and second[^1], and *first* again[^b], and none[^x].

- in a list[^1]

[^1]: The **second** note.
[^b]: The first note

    with a paragraph.

Behind."""


def test_notes_are_numbered_by_their_references(drawing: Drawing) -> None:
    drawing.draw(TEXT)
    page = drawing.page
    assert page.locator(".note-reference").all_inner_texts() == ["1", "2", "1", "[^x]", "2"]
    assert page.locator(".note-number").all_inner_texts() == ["2.", "1."]
    assert page.locator(".note-text").all_inner_texts() == [
        "The second note.",
        "The first note\n\nwith a paragraph.",
    ]
    assert page.locator("main > div > p").all_inner_texts()[-1] == "Behind."


def test_notes_lead_there_and_back(drawing: Drawing) -> None:
    drawing.draw(TEXT)
    page = drawing.page
    address = page.url
    page.locator(".note-reference a").nth(2).click()
    expect(page.locator(".note").nth(1)).to_be_focused()
    page.locator(".note").nth(1).get_by_role("link").nth(1).click()
    expect(page.locator(".note-reference a").nth(2)).to_be_focused()
    assert page.url == address


def test_ids_of_two_texts_differ(drawing: Drawing) -> None:
    page = drawing.page
    page.evaluate(
        """async text => {
          const { renderMarkdown } = await import("/playground/modules/markdown/view.js");
          for (let index = 0; index < 2; index += 1) {
            const box = document.createElement("div");
            document.querySelector("main").append(box);
            renderMarkdown(text, box);
          }
        }""",
        TEXT,
    )
    ids = page.evaluate("[...document.querySelectorAll('main [id]')].map(node => node.id)")
    assert len(ids) == len(set(ids)) == 12


def test_notes_that_stream_are_linked_when_they_come(drawing: Drawing) -> None:
    stages = drawing.stages(["a[^1] b\n\n", "[^1]: note\n", "[^2]: other\n", "\nc[^2]\n"])
    assert [stage.count("<sup>") for stage in stages] == [0, 1, 1, 2]


def test_a_class_of_characters_is_no_note(drawing: Drawing) -> None:
    drawing.draw("The pattern [^a-z] and [^ ] and `[^1]`\n\n```\n[^1]: x\n```")
    assert drawing.page.locator("main p").inner_text() == "The pattern [^a-z] and [^ ] and [^1]"
    assert drawing.page.locator("main .note").count() == 0
