"""Text-format protocol buffers are read in the forms that people and programs write."""

import pytest

from ouzel.options.profiles.text_proto import Message, Scalar, TextProtoError, read_text_proto


def only(text: str) -> Scalar | Message:
    [(_, value)] = read_text_proto(text).fields
    return value


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a: 'x'", "x"),
        ('a: "x"', "x"),
        ("""a: '{"KV": "u8"}'""", '{"KV": "u8"}'),
        (r'a: "{\"KV\": \"u8\"}"', '{"KV": "u8"}'),
        ('a: "x" \'y\'\n# between\n"z"', "xyz"),
        (r'a: "\x41\102\n\t\\\'\?"', "AB\n\t\\'?"),
        (r'a: "\303\244 \u00e4 \U0001f600"', "ä ä 😀"),
        ('a: "# no comment"', "# no comment"),
        ('a: "ä"', "ä"),
        ("a: LM_CB", "LM_CB"),
        ("a: true,", "true"),
        ("a: -1;", "-1"),
        ("a: - 1", "-1"),
        ("a: 0x1F", "0x1F"),
        ("a: 1.5e-3f", "1.5e-3f"),
        ("# first\na: 7 # behind\n# last", "7"),
    ],
)
def test_a_scalar(written: str, text: str) -> None:
    value = only(written)

    assert isinstance(value, Scalar)
    assert value.text == text


def test_quoted_texts_are_distinguished_from_words() -> None:
    assert [only("a: '1'"), only("a: 1")] == [Scalar("1", True, 1), Scalar("1", False, 1)]


@pytest.mark.parametrize(
    "written", ["a { b: 1 }", "a: { b: 1 }", "a < b: 1 >", "a: <b:1;>", "a{b:1,}"]
)
def test_a_message(written: str) -> None:
    value = only(written)

    assert isinstance(value, Message)
    assert value.texts("b") == ["1"]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (
            "[type.googleapis.com / mediapipe.LLMOptions]: {}",
            "type.googleapis.com/mediapipe.LLMOptions",
        ),
        (
            "[type.googleapis.com/mediapipe.LLMOptions] {}",
            "type.googleapis.com/mediapipe.LLMOptions",
        ),
        ("[ mediapipe.Options.ext ] {}", "mediapipe.Options.ext"),
    ],
)
def test_the_name_of_an_extension(written: str, name: str) -> None:
    assert read_text_proto(written).fields == ((name, Message()),)


@pytest.mark.parametrize("written", ["a: 1 a: 2 a: 3", "a: [1, 2, 3]", "a: 1 a: [2] a: [3] a: []"])
def test_repeated_fields(written: str) -> None:
    assert read_text_proto(written).texts("a") == ["1", "2", "3"]


def test_repeated_words_and_messages() -> None:
    assert read_text_proto("a: [LM]\na: [LM, LM_CB]").texts("a") == ["LM", "LM", "LM_CB"]
    assert [
        message.texts("b") for message in read_text_proto("a: [{b: 1}, {b: 2}]").messages("a")
    ] == [["1"], ["2"]]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("a: 1\nb {", "line 2: the name of a field must stand before the end"),
        ("a: 1 }", "line 1: the name of a field must stand before '}'"),
        ("a 1", "line 1: a message must stand before '1'"),
        ("a:\n\n:", "line 3: a value must stand before ':'"),
        ("a: 'x\ny'", 'line 1: "\'x" cannot be read'),
        ("a: [1, 2", "line 1: a value must stand before the end"),
        ("a: @", "line 1: '@' cannot be read"),
        (r'a: "\377"', "line 1: .* is no UTF-8 text"),
        ("a {" * 100, "line 1: messages are nested more than 64 deep"),
    ],
)
def test_a_syntax_error_is_named_with_its_line(written: str, message: str) -> None:
    with pytest.raises(TextProtoError, match=message):
        read_text_proto(written)
