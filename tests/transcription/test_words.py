"""Words get times from the attention of their tokens, as in openai-whisper."""

from collections.abc import Callable
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.errors import EngineFailed
from ouzel.transcription import Segment, TranscriptionOptions
from ouzel.transcription.aligned_word import AlignedWord, align_words, compute_median_duration
from ouzel.transcription.time_warping import find_row_begins
from ouzel.transcription.word_durations import place_words
from ouzel.transcription.word_punctuation import merge_punctuation
from ouzel.transcription.word_split import TokenWord, split_words
from ouzel.types.engine_request import EngineRequest
from tests.api.byte_tokens import byte_tokenizer
from tests.transcription.speech import (
    EN,
    END,
    NO_TIMESTAMPS,
    START,
    TRANSCRIBE,
    Attempt,
    Script,
    find_begin,
    list_times,
    make_sound,
    say,
    transcribe,
)

WORDS = TranscriptionOptions(language="en", has_words=True)
NUM_START = 3  # tokens before <|notimestamps|>


def attend(frames_per_token: int) -> Callable[[EngineRequest], NDArray[np.float32]]:
    """Makes an alignment in which each token of the text lasts so many frames of 20 ms."""

    def align(request: EngineRequest) -> NDArray[np.float32]:
        matrix = np.full(
            (len(request.prompt_token_ids), request.num_aligned_frames), -0.1, np.float32
        )
        for place in range(len(matrix) - NUM_START):
            begin = place * frames_per_token
            matrix[NUM_START + place, begin : begin + frames_per_token] = 1
        return matrix

    return align


def make_words(*words: tuple[str, float, float]) -> list[AlignedWord]:
    return [AlignedWord(text, 1, start_s, end_s, 1.0) for text, start_s, end_s in words]


def list_texts(words: list[AlignedWord]) -> list[str]:
    return [word.text for word in words]


async def test_words_have_times_and_probabilities() -> None:
    script = Script(
        {0: [Attempt(say(0.0, " Hello", " you!", 3.0), logprob=-0.5)]}, align=attend(10)
    )
    result = await transcribe(script, make_sound(5), WORDS)
    (segment,) = result.segments
    assert [(each.text, each.start_s, each.end_s) for each in segment.words] == [
        (" Hello", 0.0, 1.2),
        (" you!", 1.2, 2.0),  # a mark has no time
    ]
    assert segment.words[0].probability == pytest.approx(exp(-0.5))
    assert (segment.start_s, segment.end_s) == (0.0, 2.0)
    (request,) = [each for each in script.requests if each.num_aligned_frames]
    assert request.prompt_token_ids == [
        *[START, EN, TRANSCRIBE, NO_TIMESTAMPS],
        *b" Hello you!",
        END,
    ]
    assert (request.params.max_tokens, request.num_aligned_frames) == (0, 250)
    # the same salt, so that the sound is not encoded again
    assert {request.cache_salt} == {each.cache_salt for each in script.decodings()}


async def test_words_belong_to_their_segments() -> None:
    script = Script({0: [Attempt(say(0.0, " a b", 1.0, 1.0, " c", 2.0))]}, align=attend(5))
    result = await transcribe(script, make_sound(5), WORDS)
    words = [[word.text for word in segment.words] for segment in result.segments]
    assert words == [[" a", " b"], [" c"]]


async def test_the_next_window_begins_after_the_last_word() -> None:
    script = Script(
        {
            0: [Attempt(say(0.0, " Hello", 4.0, 4.0))],
            120: [Attempt(say(0.0, " you", 1.0))],
        },
        align=attend(10),
    )
    result = await transcribe(script, make_sound(5), WORDS)
    assert list_times(result) == [(0.0, 1.2, " Hello"), (1.2, 2.0, " you")]
    assert [find_begin(each) for each in script.decodings()] == [0, 120]


async def test_a_window_without_text_needs_no_alignment() -> None:
    script = Script({0: [Attempt([])]})
    assert (await transcribe(script, make_sound(5), WORDS)).segments == ()
    assert not any(each.num_aligned_frames for each in script.requests)


async def test_a_broken_alignment_is_a_fault_of_the_engine() -> None:
    def align(request: EngineRequest) -> NDArray[np.float32]:
        return np.full((len(request.prompt_token_ids), request.num_aligned_frames), np.nan)

    script = Script({0: [Attempt(say(0.0, " Hello", 4.0))]}, align=align)
    with pytest.raises(EngineFailed, match="not finite"):
        await transcribe(script, make_sound(5), WORDS)


def test_the_cheapest_path_follows_the_least_costs() -> None:
    costs = np.ones((3, 8), np.float32)
    costs[0, :2] = costs[1, 2:5] = costs[2, 5:] = -1
    assert find_row_begins(costs).tolist() == [0, 2, 5]


def test_more_rows_than_columns_share_a_column() -> None:
    assert find_row_begins(np.zeros((3, 1), np.float32)).tolist() == [0, 0, 0]
    assert find_row_begins(np.zeros((1, 4), np.float32)).tolist() == [0]


def test_the_path_equals_the_plain_recursion() -> None:
    generator = np.random.default_rng(0)
    for _ in range(40):
        costs = generator.normal(size=generator.integers(1, 9, 2)).astype(np.float32)
        assert find_row_begins(costs).tolist() == find_slowly(costs)


def find_slowly(costs: NDArray[np.float32]) -> list[int]:
    """Finds the columns in which the cheapest path enters the rows, cell by cell."""
    sums = np.full((len(costs) + 1, costs.shape[1] + 1), np.inf)
    sums[0, 0] = 0
    for row, column in np.ndindex(costs.shape):
        before = (sums[row, column], sums[row, column + 1], sums[row + 1, column])
        sums[row + 1, column + 1] = costs[row, column] + min(before)
    row, column = costs.shape[0] - 1, costs.shape[1] - 1
    begins = {row: column}
    while row or column:
        ways = {(row - 1, column - 1), (row - 1, column), (row, column - 1)}
        row, column = min(ways, key=lambda way: sums[way[0] + 1, way[1] + 1])
        begins[row] = column
    return [begins[each] for each in sorted(begins)]


def test_words_begin_with_spaces_or_are_marks() -> None:
    words = split_words(say(" It's", " 3", ".5", " km"), byte_tokenizer(), "en")
    assert [(word.text, word.num_tokens) for word in words] == [
        (" It", 3),
        ("'s", 2),
        (" 3", 2),
        (".5", 2),
        (" km", 3),
    ]


def test_languages_without_spaces_have_a_word_for_each_character() -> None:
    words = split_words(say("日本 a"), byte_tokenizer(), "ja")
    assert words == [
        TokenWord("日", 3),
        TokenWord("本", 3),
        TokenWord(" ", 1),
        TokenWord("a", 1),
    ]


def test_no_word_has_half_a_character() -> None:
    words = split_words(say(" é")[:-1], byte_tokenizer(), "en")
    assert words == [TokenWord(" \ufffd", 2)]


def test_words_have_the_mean_probability_of_their_tokens() -> None:
    words = align_words(
        [TokenWord(" a", 2), TokenWord(" b", 1)], np.array([0.0, 0.5, 1.0, 2.0]), [0.2, 0.4, 1.0]
    )
    assert [(each.start_s, each.end_s) for each in words] == [(0.0, 1.0), (1.0, 2.0)]
    assert [each.probability for each in words] == pytest.approx([0.3, 1.0])


def test_marks_join_their_words() -> None:
    words = make_words((" “", 0, 1), ("a", 1, 2), (",", 2, 3), (" -", 3, 4), (" b", 4, 5))
    merged = merge_punctuation([*words, *make_words((".", 5, 6), ("”", 6, 7))])
    assert list_texts(merged) == [" “a,", " - b.”"]
    assert [(each.start_s, each.num_tokens) for each in merged] == [(1, 3), (4, 4)]


def test_the_median_duration_has_a_limit_and_ignores_zeros() -> None:
    assert compute_median_duration(make_words(("a", 0, 0), ("b", 0, 0.2), ("c", 1, 1.4))) == (
        pytest.approx(0.3)
    )
    assert compute_median_duration(make_words(("a", 0, 9))) == 0.7
    assert compute_median_duration([]) == 0


SEGMENT = Segment(
    id=0,
    seek=1000,
    start_s=10.0,
    end_s=15.0,
    text="",
    token_ids=(),
    temperature=0.0,
    avg_logprob=0.0,
    compression_ratio=1.0,
    no_speech_prob=0.0,
)


def place(
    *words: tuple[str, float, float], segment: Segment = SEGMENT, last_speech_s: float = 10.0
) -> list[tuple[str, float, float]]:
    (placed,) = place_words(
        make_words(*words), [segment], [len(words)], last_speech_s=last_speech_s
    )
    return [(each.text, round(each.start_s, 3), round(each.end_s, 3)) for each in placed.words]


USUAL = [
    (f" {place}", 1 + place * 0.2, 1.2 + place * 0.2) for place in range(9)
]  # they end at 2.8 s


def test_times_are_counted_from_the_begin_of_the_sound() -> None:
    assert place(*USUAL)[0] == (" 0", 11.0, 11.2)


def test_a_word_after_a_sentence_loses_the_pause() -> None:
    placed = place(*USUAL, (".", 2.8, 2.9), (" b", 2.9, 4.9))
    assert placed[-2:] == [(" 8.", 12.6, 12.8), (" b", 14.5, 14.9)]


def test_a_first_word_after_a_pause_loses_the_pause() -> None:
    placed = place((" a", 0.0, 1.0), *USUAL, last_speech_s=8.0)
    assert placed[0] == (" a", 10.6, 11.0)


def test_a_second_word_after_a_pause_loses_the_pause() -> None:
    words = [(" a", 0.0, 0.2), (" b", 0.2, 3.0), *((t, s + 2, e + 2) for t, s, e in USUAL)]
    placed = place(*words, last_speech_s=5.0)
    assert placed[:2] == [(" a", 12.2, 12.6), (" b", 12.6, 13.0)]


def test_a_long_first_word_begins_with_its_segment() -> None:
    segment = replace(SEGMENT, start_s=10.8)
    placed = place((" a", 0.0, 1.0), *USUAL, segment=segment, last_speech_s=10.5)
    assert placed[0] == (" a", 10.8, 11.0)


def test_a_long_last_word_ends_with_its_segment() -> None:
    segment = replace(SEGMENT, end_s=13.5)
    placed = place(*USUAL, (" b", 2.8, 4.9), segment=segment)
    assert placed[-1] == (" b", 12.8, 13.5)
