"""Shows the text of a window while it is decoded, as far as it is final.

Rules
1. A window that may be decoded again shows nothing before its last decoding is accepted.
2. With timestamps, a segment is final when the next one begins: the tokens after the last complete
   segment belong to the next window.
3. Without timestamps, each token is final. White space waits for a character behind it, so that a
   window without text shows nothing.
4. No text ends within a character: the detokenizer holds its bytes back.
"""

from collections.abc import Callable, Sequence

from ouzel.tokenizer.base import Detokenizer, Tokenizer
from ouzel.transcription.events import Segment, TextDelta
from ouzel.transcription.segment_cuts import Cut, cut_closed
from ouzel.transcription.speech_prompts import SpeechPrompts
from ouzel.transcription.window_decoder import decode_text
from ouzel.types.step_output import PositionLogprobs

Emit = Callable[[TextDelta], None]


def has_content(start_s: float, end_s: float, text: str) -> bool:
    """Tells whether a segment stays in the transcription."""
    return start_s != end_s and bool(text.strip())


class ShownText:
    """Emits the text of one window: a part while it is decoded, and the rest of each segment."""

    def __init__(
        self, prompts: SpeechPrompts, tokenizer: Tokenizer, emit: Emit, *, has_logprobs: bool
    ) -> None:
        self._prompts = prompts
        self._tokenizer = tokenizer
        self._emit = emit
        self._has_logprobs = has_logprobs
        self._detokenizer: Detokenizer | None = None
        self._num_fed = 0  # tokens that the detokenizer has
        self._num_shown = 0  # tokens whose text was shown
        self._shown = ""  # text of the only segment, without timestamps
        self._held = ""  # white space before it
        self._num_cuts = 0  # segments so far, also without content

    def show(self, token_ids: Sequence[int], logprobs: Sequence[PositionLogprobs]) -> None:
        """Shows the final text of the tokens so far."""
        if not self._prompts.has_timestamps:
            self._show_tokens(token_ids, logprobs)
            return
        for cut in cut_closed(token_ids, self._prompts.tokens)[self._num_cuts :]:
            self._num_cuts += 1
            text = decode_text(
                token_ids[cut.begin : cut.end], self._prompts.tokens, self._tokenizer
            )
            if has_content(cut.start_s, cut.end_s, text):
                self._send(text, token_ids, logprobs, cut.begin, cut.end)

    def show_segment(
        self,
        cut: Cut,
        segment: Segment,
        token_ids: Sequence[int],
        logprobs: Sequence[PositionLogprobs],
    ) -> None:
        """Shows the part of an accepted segment that was not shown before."""
        if cut.end <= self._num_shown and not self._shown:
            return
        rest = segment.text.removeprefix(self._shown)
        self._send(rest, token_ids, logprobs, max(cut.begin, self._num_shown), cut.end)

    def _show_tokens(self, token_ids: Sequence[int], logprobs: Sequence[PositionLogprobs]) -> None:
        if self._detokenizer is None:
            self._detokenizer = self._tokenizer.detokenizer(skip_special_tokens=True)
        end = self._prompts.tokens.end
        new = [token_id for token_id in token_ids[self._num_fed :] if token_id < end]
        self._num_fed = len(token_ids)
        text = self._held + self._detokenizer.feed(new)
        if not self._shown and not text.strip():
            self._held = text
            return
        self._held = ""
        self._shown += text
        self._send(text, token_ids, logprobs, self._num_shown, len(token_ids))

    def _send(
        self,
        text: str,
        token_ids: Sequence[int],
        logprobs: Sequence[PositionLogprobs],
        begin: int,
        end: int,
    ) -> None:
        if not text:
            return
        self._num_shown = end
        places = range(begin, min(end, len(logprobs))) if self._has_logprobs else ()
        is_text = (place for place in places if token_ids[place] < self._prompts.tokens.end)
        self._emit(TextDelta(text=text, logprobs=tuple(logprobs[place] for place in is_text)))
