import pytest

from ouzel.parsers.plain import PlainParser
from tests.parsers.cutting import Folded, check_parser


@pytest.mark.parametrize(
    "text", ["", "Hello", "<think>stays</think> as <tool_call>written", "日本 🙂"]
)
def test_everything_is_content(text: str) -> None:
    check_parser(PlainParser, text, Folded(content=text))
