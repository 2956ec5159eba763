"""A piece of a stream waits for the next piece, for the end, or for several tokens without text."""

import pytest

from ouzel.api.openai.completions import Completion, CompletionChoice
from ouzel.api.ovms.held_pieces import HeldPieces
from ouzel.generation import Finished, Output
from ouzel.types.step_output import FinishReason

END = Finished(0, FinishReason.STOP, None)


def piece(text: str, finish_reason: str | None = None, index: int = 0) -> Completion:
    choice = CompletionChoice(index, text)
    choice.finish_reason = finish_reason
    return Completion("cmpl-1", 0, "parrot", "fp", [choice])


def output(num_tokens: int, index: int = 0) -> Output:
    return Output(index, [], [1] * num_tokens, [])


def list_texts(chunks: list[Completion]) -> list[tuple[str, str | None]]:
    return [(chunk.choices[0].text, chunk.choices[0].finish_reason) for chunk in chunks]


@pytest.mark.parametrize("tokens", [[1] * 15, [15], [7, 8]])
def test_a_piece_waits_for_the_end_through_a_short_silence(tokens: list[int]) -> None:
    held = HeldPieces[Completion]()
    assert held.take(output(1), [piece("Hi")]) == []
    assert [held.take(output(number), []) for number in tokens] == [[] for _ in tokens]
    assert list_texts(held.take(END, [piece("", "stop")])) == [("Hi", "stop")]


@pytest.mark.parametrize("tokens", [[1] * 16, [16], [15, 2]])
def test_a_piece_does_not_wait_through_a_long_silence(tokens: list[int]) -> None:
    held = HeldPieces[Completion]()
    assert held.take(output(1), [piece("Hi")]) == []
    *before, last = [held.take(output(number), []) for number in tokens]
    assert not any(before)
    assert list_texts(last) == [("Hi", None)]
    assert list_texts(held.take(END, [piece("", "stop")])) == [("", "stop")]


def test_a_silence_of_one_choice_does_not_hurry_another() -> None:
    held = HeldPieces[Completion]()
    held.take(output(1), [piece("Hi")])
    assert held.take(output(16, index=1), []) == []
