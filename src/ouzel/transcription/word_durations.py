"""Places words in their segments, and shortens words that include a pause.

The rules come from openai-whisper's `timing.py`: a word next to a pause or to the end of a
sentence lasts at most twice the median duration of the window's words.
"""

from collections.abc import Sequence
from dataclasses import replace

from ouzel.transcription.aligned_word import AlignedWord, compute_median_duration
from ouzel.transcription.events import Segment, Word
from ouzel.transcription.windows import FRAMES_PER_S
from ouzel.transcription.word_punctuation import merge_punctuation

_SENTENCE_ENDS = ".。!！?？"
_MAX_DIFFERENCE_S = 0.5  # a word that differs more from its segment gets the segment's time
_PAUSE_MEDIANS = 4  # a gap of so many medians is a pause


def place_words(
    words: Sequence[AlignedWord],
    segments: Sequence[Segment],
    nums_tokens: Sequence[int],
    *,
    last_speech_s: float,
) -> list[Segment]:
    """Returns the segments of a window with their words, and with times that follow the words.

    `nums_tokens` has the number of text tokens of each segment. `last_speech_s` is the end of the
    speech before the window.
    """
    median_s = compute_median_duration(words)
    rest = merge_punctuation(_limit_at_sentence_ends(words, 2 * median_s))
    placed: list[Segment] = []
    for segment, num_tokens in zip(segments, nums_tokens, strict=True):
        num_words = _count_words(rest, num_tokens)
        own, rest = rest[:num_words], rest[num_words:]
        if own:
            offset_s = segments[0].seek / FRAMES_PER_S
            shown = _limit_after_pause(
                [_make_word(each, offset_s) for each in own], median_s, last_speech_s
            )
            placed.append(_fit_to_segment(shown, segment, median_s))
            last_speech_s = placed[-1].end_s
        else:
            placed.append(segment)
    return placed


def _limit_at_sentence_ends(
    words: Sequence[AlignedWord], max_duration_s: float
) -> list[AlignedWord]:
    limited = list(words)
    if not any(word.duration_s for word in words):
        return limited
    for place in range(1, len(limited)):
        word = limited[place]
        if word.duration_s <= max_duration_s:
            continue
        if word.text in _SENTENCE_ENDS:
            limited[place] = replace(word, end_s=word.start_s + max_duration_s)
        elif limited[place - 1].text in _SENTENCE_ENDS:
            limited[place] = replace(word, start_s=word.end_s - max_duration_s)
    return limited


def _count_words(words: Sequence[AlignedWord], num_tokens: int) -> int:
    """Returns how many of the words have so many tokens."""
    num_words = 0
    while num_words < len(words) and num_tokens > 0:
        num_tokens -= words[num_words].num_tokens
        num_words += 1
    return num_words


def _make_word(word: AlignedWord, offset_s: float) -> Word:
    return Word(
        text=word.text,
        start_s=round(offset_s + word.start_s, 2),
        end_s=round(offset_s + word.end_s, 2),
        probability=word.probability,
    )


def _limit_after_pause(words: list[Word], median_s: float, last_speech_s: float) -> list[Word]:
    """Shortens the first two words if there is a pause before them."""
    first, max_s = words[0], 2 * median_s
    second = words[1] if len(words) > 1 else None
    is_long = first.end_s - first.start_s > max_s
    are_long = second is not None and second.end_s - first.start_s > 2 * max_s
    if first.end_s - last_speech_s <= _PAUSE_MEDIANS * median_s or not (is_long or are_long):
        return words
    if second is not None and second.end_s - second.start_s > max_s:
        boundary_s = max(second.end_s / 2, second.end_s - max_s)
        first = replace(first, end_s=boundary_s)
        words = [first, replace(second, start_s=boundary_s), *words[2:]]
    return [replace(first, start_s=max(0.0, first.end_s - max_s)), *words[1:]]


def _fit_to_segment(words: list[Word], segment: Segment, median_s: float) -> Segment:
    """Fits the outer times of words and segment to each other.

    The segment takes the times of its words, unless its first or last word is too long.
    """
    first = words[0]
    start_s, end_s = first.start_s, words[-1].end_s
    if segment.start_s < first.end_s and segment.start_s - _MAX_DIFFERENCE_S > start_s:
        start_s = segment.start_s
        begin_s = max(0.0, min(first.end_s - median_s, segment.start_s))
        words = [replace(first, start_s=begin_s), *words[1:]]
    last = words[-1]
    if segment.end_s > last.start_s and segment.end_s + _MAX_DIFFERENCE_S < end_s:
        end_s = segment.end_s
        words = [*words[:-1], replace(last, end_s=max(last.start_s + median_s, segment.end_s))]
    return replace(segment, start_s=start_s, end_s=end_s, words=tuple(words))
