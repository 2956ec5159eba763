"""Prompt templates are read from YAML files; every fault names the file, the prompt and the key."""

from pathlib import Path

import pytest

from ouzel.options.invalid_option import InvalidOption
from ouzel.responses.templates.library import PromptLibrary
from ouzel.responses.templates.template import Templates
from ouzel.serve.prompt_files import open_prompts, reload_prompts

GOOD = """
- id: support
  description: Answers customers.
  versions:
    - version: 1
      instructions: You are {{ role }}.
    - version: "2-beta"
      messages:
        - role: developer
          content: Speak {{language}}.
        - role: user
          content:
            - {type: input_text, text: "{{question}} In {{language}}!"}
            - {type: input_image, image_url: "data:,"}
      temperature: 0.5
      tools:
        - {type: function, name: look, parameters: {type: object}}
      text: {format: {type: json_object}}
"""


def write(directory: Path, text: str, name: str = "prompts.yaml") -> str:
    file = directory / name
    file.write_text(text)
    return str(file)


def test_a_file_has_templates_with_versions(tmp_path: Path) -> None:
    templates = open_prompts(write(tmp_path, GOOD)).templates
    support = templates["support"]
    assert (support.description, support.default_version) == ("Answers customers.", "2-beta")
    first, second = support.versions.values()
    assert (first.name, first.instructions, first.variables) == (
        "1",
        "You are {{ role }}.",
        ("role",),
    )
    assert second.variables == ("language", "question")
    assert second.defaults.keys() == {"temperature", "tools", "text"}
    assert [message["role"] for message in second.messages] == ["developer", "user"]


def test_a_directory_has_files(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD.replace("id: support", "id: sales"), "sales.yml")
    write(tmp_path, "not read", "README.md")
    assert open_prompts(str(tmp_path)).templates.keys() == {"support", "sales"}


def test_without_a_path_there_are_no_templates() -> None:
    assert open_prompts("").templates == {}


def test_the_default_version_can_be_chosen(tmp_path: Path) -> None:
    text = GOOD.replace("  versions:", "  default_version: 1\n  versions:")
    assert open_prompts(write(tmp_path, text)).templates["support"].default_version == "1"


ONE = "- id: a\n  versions:\n    - version: 1\n      "


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file must hold a list of prompts, given null"),
        ("a: b", 'the file must hold a list of prompts, given {"a":"b"}'),
        ("- 5", "prompts[0] must be a mapping of names, given 5"),
        ("- {1: 2}", 'prompts[0] must be a mapping of names, given {"1":2}'),
        ("- {id: a, colour: red}", "prompts[0].colour is not a key of this mapping"),
        ("- {id: a b}", "prompts[0].id must be 1 to 64 letters, digits, dots, hyphens and under"),
        ("- versions: []", "prompts[0].id must be 1 to 64 letters, digits, dots, hyphens and u"),
        ("- {id: a, description: 5}", "prompts[0].description must be a text, given 5"),
        ("- id: a", "prompt a: versions must be a list of at least one version, given null"),
        ("- {id: a, versions: []}", "prompt a: versions must be a list of at least one version"),
        (
            "- {id: a, versions: [{version: 1.5}]}",
            "prompt a: versions[0].version must be a text or an integer, given 1.5",
        ),
        (
            "- {id: a, versions: [{instructions: x}]}",
            "prompt a: versions[0].version must be a text or an integer, given null",
        ),
        (
            "- {id: a, versions: [{version: 1, instructions: x}, {version: '1'}]}",
            "prompt a: versions[1] must differ from the other versions, given 1",
        ),
        (
            "- {id: a, default_version: 3, versions: [{version: 1, instructions: x}]}",
            "prompt a: default_version must be one of 1, given 3",
        ),
        (f"{ONE}temperature: 1", "prompt a, version 1: needs instructions or messages"),
        (f"{ONE}instructions: [x]", 'prompt a, version 1: instructions must be a text, given ["x'),
        (
            f"{ONE}instructions: 'Hi {{{{your name}}}}.'",
            "prompt a, version 1: instructions must have a variable behind each {{, like {{name}},"
            ' given "{{your name}}."',
        ),
        (
            f"{ONE}messages: [{{role: user, content: 'x {{{{'}}]",
            "prompt a, version 1: messages[0].content must have a variable behind each {{",
        ),
        (f"{ONE}messages: 5", "prompt a, version 1: messages must be a list, given 5"),
        (
            f"{ONE}messages: [{{role: tool, content: x}}]",
            "prompt a, version 1: messages[0].role must be one of system, developer, user, assist",
        ),
        (
            f"{ONE}messages: [{{role: user, content: ''}}]",
            'prompt a, version 1: messages[0].content must be a text or a list of parts, given ""',
        ),
        (
            f"{ONE}messages: [{{role: user, content: [{{type: input_text}}]}}]",
            "prompt a, version 1: messages[0].content[0].text must be a text, given null",
        ),
        (
            f"{ONE}messages: [{{role: user, content: [{{type: output_text, text: x}}]}}]",
            "prompt a, version 1: messages[0].content[0].type must be one of input_text, input_im",
        ),
        (
            f"{ONE}messages: [{{role: assistant, content: [x]}}]",
            'prompt a, version 1: messages[0].content must be a text, given ["x"]',
        ),
        (
            f"{ONE}messages: [{{role: user, content: x, name: y}}]",
            "prompt a, version 1: messages[0].name is not a key of this mapping",
        ),
        (
            f"{ONE}instructions: x\n      temperature: 9",
            "prompt a, version 1: temperature must be <= 2.0, given 9",
        ),
        (
            f"{ONE}instructions: x\n      text: {{format: {{type: poem}}}}",
            "prompt a, version 1: text.format",
        ),
        (
            f"{ONE}instructions: x\n      stream: true",
            "prompt a, version 1: stream is no field that a template can set; it can set "
            "instructions, messages, frequency_penalty, include",
        ),
        ("- id: a\n  id: b", "'id' stands twice in a mapping"),
        (f"{ONE}instructions: x\n{ONE}instructions: y", "the prompt a stands twice"),
    ],
)
def test_a_fault_of_a_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidOption) as raised:
        open_prompts(path)
    assert str(raised.value).startswith(f"--prompts {path}: ")
    assert complaint in str(raised.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"--prompts /nowhere: cannot be read: No such file"):
        open_prompts("/nowhere")
    with pytest.raises(InvalidOption, match=r"the directory has no file \*.yaml or \*.yml"):
        open_prompts(str(tmp_path))


async def test_a_reload_reads_the_files_again_and_a_fault_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = open_prompts(write(tmp_path, GOOD))
    write(tmp_path, GOOD.replace("id: support", "id: sales"))
    await reload_prompts(library)
    assert list(library.templates) == ["sales"]
    write(tmp_path, "- 5")
    await reload_prompts(library)
    assert list(library.templates) == ["sales"]
    assert "the prompts were not reloaded: --prompts" in caplog.text


async def test_a_reload_survives_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    readings: list[Templates] = [{}]  # the second reading raises an IndexError
    library = PromptLibrary(readings.pop)
    await reload_prompts(library)
    assert "the prompts could not be reloaded" in caplog.text
