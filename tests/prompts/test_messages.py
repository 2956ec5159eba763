import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.messages import Message, ReadableMedia, normalise_messages

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at": "it"}'},
}


def test_plain_messages_stay_as_they_are() -> None:
    messages: list[Message] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello", "name": "Ann", "unknown": {"kept": [1]}},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "42", "tool_call_id": "call_1"},
        {"role": "ipython", "content": ""},
    ]
    assert normalise_messages(messages) == messages


def test_normalising_twice_changes_nothing() -> None:
    once = normalise_messages([{"role": "assistant", "content": None, "tool_calls": [CALL]}])
    assert normalise_messages(once) == once


def test_the_clients_messages_are_not_changed() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": None}
    normalise_messages([message])
    assert message == {"role": "assistant", "content": None, "tool_calls": None}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # a message of the history, as the openai client sends it back
        (
            {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "audio": None,
                "tool_calls": [CALL],
            },
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
        ),
        (
            {"role": "assistant", "content": "a", "tool_calls": []},
            {"role": "assistant", "content": "a"},
        ),
        (
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "look", "arguments": "{}"},
            },
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"type": "function", "function": {"name": "look", "arguments": "{}"}}
                ],
            },
        ),
        (
            {"role": "function", "name": "look", "content": "42"},
            {"role": "tool", "name": "look", "content": "42"},
        ),
        (
            {"role": "assistant", "reasoning_content": "r"},
            {"role": "assistant", "reasoning_content": "r", "content": ""},
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "assistant", "content": [{"type": "text", "text": "No."}]},
        ),
        (
            {"role": "assistant", "content": None, "refusal": "No."},
            {"role": "assistant", "content": "No."},
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "look"}}]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"type": "function", "function": {"name": "look", "arguments": "{}"}}
                ],
            },
        ),
    ],
)
def test_messages_are_normalised(given: Message, expected: Message) -> None:
    assert normalise_messages([given]) == [expected]


USER: Message = {"role": "user", "content": "Hello"}
PDF = "data:application/pdf;base64,JVBERi0xLjQK"


@pytest.mark.parametrize(
    ("messages", "param", "message"),
    [
        (None, "messages", "non-empty list"),
        ([], "messages", "non-empty list"),
        ("Hello", "messages", "non-empty list"),
        (["Hello"], "messages[0]", 'an object, given "Hello"'),
        ([USER, {"content": "x"}], "messages[1].role", "a non-empty string, given nothing"),
        ([USER, {"role": 5, "content": "x"}], "messages[1].role", "given 5"),
        ([{"role": "user"}], "messages[0].content", "given nothing"),
        ([{"role": "user", "content": None}], "messages[0].content", "given nothing"),
        ([{"role": "user", "content": 5}], "messages[0].content", "given 5"),
        ([{"role": "user", "content": []}], "messages[0].content", "given an empty list"),
        ([{"role": "user", "content": {"type": "text"}}], "messages[0].content", "given an object"),
        ([{"role": "user", "content": ["x"]}], "messages[0].content[0]", 'an object, given "x"'),
        ([{"role": "user", "content": [{"text": "x"}]}], "messages[0].content[0].type", "a string"),
        (
            [{"role": "user", "content": [{"type": "text"}]}],
            "messages[0].content[0].text",
            "a string",
        ),
        (
            [
                USER,
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": ""},
                        {"type": "image_url", "image_url": {}},
                    ],
                },
            ],
            "messages[1].content[1].type",
            'given "image_url": this model reads text only',
        ),
        (
            [
                USER,
                {
                    "role": "user",
                    "content": [{"type": "text", "text": ""}, {"type": "file", "file": {}}],
                },
            ],
            "messages[1].content[1].file.file_data",
            "given nothing",
        ),
        (
            [{"role": "user", "content": [{"type": "file", "file": {"file_data": PDF}}]}],
            "messages[0].content[0].file.file_data",
            "must not be a document: this model reads text only",
        ),
        (
            [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "data:,"}}]}],
            "messages[0].content[0].type",
            'given "video_url": this model reads text only',
        ),
        ([{"role": "user", "content": "x", "name": True}], "messages[0].name", "given true"),
        ([{"role": "assistant", "refusal": 5}], "messages[0].refusal", "given 5"),
        (
            [{"role": "assistant", "content": "x", "refusal": "y"}],
            "messages[0].refusal",
            "beside a content",
        ),
        (
            [USER, {"role": "assistant", "audio": {"id": "a"}}],
            "messages[1].audio",
            "this server keeps no sounds",
        ),
        (
            [{"role": "tool", "content": "x", "tool_call_id": 1}],
            "messages[0].tool_call_id",
            "given 1",
        ),
        ([{"role": "assistant", "tool_calls": {}}], "messages[0].tool_calls", "a list"),
        (
            [{"role": "assistant", "tool_calls": [{}]}],
            "messages[0].tool_calls[0].function",
            "an object",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": ""}}]}],
            "messages[0].tool_calls[0].function.name",
            'given ""',
        ),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}],
            "messages[0].tool_calls[0].function.arguments",
            "given a list",
        ),
    ],
)
def test_a_wrong_message_is_named_by_its_path(messages: object, param: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        normalise_messages(messages)
    assert caught.value.param == param
    assert str(caught.value).startswith(param)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("readable", "kind", "reads"),
    [
        (ReadableMedia(pictures=True, sounds=True), "video_url", "text, pictures and sounds, no"),
        (ReadableMedia(sounds=True), "image_url", "text and sounds"),
        (ReadableMedia(pictures=True), "input_audio", "text and pictures"),
    ],
)
def test_an_error_names_the_kinds_that_a_model_reads(
    readable: ReadableMedia, kind: str, reads: str
) -> None:
    messages = [{"role": "user", "content": [{"type": kind}]}]

    with pytest.raises(InvalidRequest, match=f'given "{kind}": this model reads {reads}'):
        normalise_messages(messages, readable)
