"""Rates count only tokens whose time is known."""

import pytest

from ouzel.terminal_chat.answer import Answer, Usage
from ouzel.terminal_chat.commands.stats import format_stats


@pytest.mark.parametrize(("first_s", "rate"), [(0.5, "40.0 tokens/s"), (0.99, "21.0 tokens/s")])
def test_tokens_that_came_all_at_once_have_the_rate_of_the_whole_answer(
    first_s: float, rate: str
) -> None:
    answer = Answer(usage=Usage(5, 21), begin_s=0.0, first_s=first_s, end_s=1.0)
    text = format_stats([answer])
    assert text == (
        f"last answer: TTFT {first_s:.2f} s, {rate}, "
        "5 prompt tokens (0 cached), 21 completion tokens"
    )


def test_several_answers_are_added_up_except_answers_without_a_count() -> None:
    answers = [Answer(usage=Usage(5, 7)), Answer(usage=Usage(10, 3)), Answer()]
    assert format_stats([]) == "there is no answer yet"
    assert format_stats(answers).splitlines() == [
        "last answer: the server counted no tokens",
        "3 answers: 15 prompt tokens (0 cached), 10 completion tokens",
    ]
