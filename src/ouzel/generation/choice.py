"""Turns the token ids of one choice into deltas.

It works token by token, so the result does not depend on how many tokens come at once: a slow
reader gets the same text, the same usage and the same end.
"""

import logging
from collections import deque
from collections.abc import Sequence

import msgspec

from ouzel.generation.hidden_tokens import HiddenTokens
from ouzel.generation.output_joining import join_deltas, join_outputs
from ouzel.generation.records import Event, Finished, GenerationRequest, Output
from ouzel.generation.served_model import ServedModel
from ouzel.parsers.base import CONTROL_SIGN, Delta, ReasoningDelta
from ouzel.parsers.registry import PLAIN
from ouzel.tokenizer.stop_strings import StopStringMatcher
from ouzel.types.step_output import FinishReason, PositionLogprobs, StepOutput

logger = logging.getLogger(__name__)


class Choice:
    """Detokenizes, stops and parses the output of one choice."""

    def __init__(self, index: int, request: GenerationRequest, model: ServedModel) -> None:
        self.num_tokens = 0
        self.num_reasoning_tokens = 0
        # Both as the engine counts, which may continue after the end of the choice.
        self._num_proposed_tokens = 0
        self._num_right_tokens = 0
        self.is_finished = False
        self.first_token_s = self.last_token_s = 0.0  # 0 before the first token
        self._index = index
        self._request_id = request.request_id
        limit = request.max_hidden_tokens
        self._hidden_tokens = None if limit is None else HiddenTokens(limit)
        self._includes_stop = request.include_stop_str_in_output
        self._shows_end_token = (
            request.include_stop_str_in_output or not request.skip_special_tokens
        )
        output_format = model.output_format if request.parses_output else PLAIN
        # Evaluation tools expect an entry for each generated token of a completion, also for the
        # end token. Chats show none for it.
        self._scores_end_token = request.continues_prompt
        self._detokenizer = model.tokenizer.detokenizer(
            skip_special_tokens=request.skip_special_tokens,
            shown_special_tokens=output_format.special_tokens(with_calls=bool(request.tools)),
            prompt_token_ids=request.prompt.token_ids if request.continues_prompt else (),
        )
        self._min_tokens = request.params.min_tokens
        self._stop_token_ids = request.params.stop_token_ids
        self._has_stop_strings = bool(request.stop_strings)
        self._stop = StopStringMatcher(request.stop_strings, request.include_stop_str_in_output)
        self._num_chars_fed = 0  # characters passed to the matcher
        self._num_chars_given = 0  # characters returned by the matcher
        # (start of the token's text, logprobs)
        self._held_logprobs: deque[tuple[int, PositionLogprobs]] = deque()
        self._parser = output_format.make_parser(
            request.tools,
            request.prompt.text_to_parse,
            continues_prompt=request.continues_prompt,
            bare_calls=request.bare_calls,
        )
        self._call_mark = output_format.call_mark if request.tools else ""
        self._call_token_id = model.tokenizer.token_id(self._call_mark) if self._call_mark else None
        # begins, in fed characters, of the marks that are not parsed yet
        self._call_marks: deque[int] = deque()
        self._is_reasoning = False
        # tokens without a delta so far: they count as reasoning if reasoning comes before and after
        self._num_held_tokens = 0
        # Logprobs belong to the deltas beside them, so tokens with deltas of different kinds get
        # outputs of their own.
        self._tells_apart = request.params.num_logprobs is not None and output_format is not PLAIN

    @property
    def num_accepted_tokens(self) -> int:
        """Counts the tokens of the choice that were accepted proposals."""
        # Tokens after a stop string do not belong to the choice.
        return min(self._num_right_tokens, self.num_tokens)

    @property
    def num_rejected_tokens(self) -> int:
        """Counts the proposed tokens that are not in the choice."""
        return self._num_proposed_tokens - self.num_accepted_tokens

    def advance(self, output: StepOutput) -> list[Event]:
        """Returns the events of one output.

        The last is `Finished` if the engine or the text ended it.
        """
        if output.num_proposed_tokens:
            self._num_proposed_tokens = max(self._num_proposed_tokens, output.num_proposed_tokens)
            self._num_right_tokens = max(self._num_right_tokens, output.num_accepted_tokens)
        text_ids = self._text_ids(output)
        outputs: list[Output] = []
        deltas: list[Delta] = []
        matched: str | None = None
        num_used = group_start = 0
        for token_id in text_ids:
            if self._tells_apart and num_used:
                outputs.append(self._output(deltas, text_ids[group_start:num_used]))
                deltas, group_start = [], num_used
            if output.logprobs:
                self._held_logprobs.append((self._num_chars_fed, output.logprobs[num_used]))
            num_used += 1
            may_stop = self.num_tokens + num_used > self._min_tokens
            self._num_held_tokens += 1
            text = self._detokenizer.feed((token_id,))
            if token_id == self._call_token_id:
                self._note_call_mark(text)
            num_deltas = len(deltas)
            matched = self._feed(text, deltas, may_stop=may_stop)
            if matched is not None:
                break
            if (
                self._hidden_tokens is not None
                and self._hidden_tokens.note(deltas, num_deltas)
                and may_stop
            ):
                output = self._cut_off(output, text_ids, num_used, self._hidden_tokens.count)
                break
        token_ids = output.token_ids if matched is None else text_ids[:num_used]
        self.num_tokens += len(token_ids)
        last_ids = token_ids[group_start:]
        if matched is not None or output.finish_reason is not None:
            return self._finish(output, matched, deltas, last_ids, outputs)
        return list(join_outputs([*outputs, self._output(deltas, last_ids)])) if last_ids else []

    def _note_call_mark(self, text: str) -> None:
        """Notes where in `text`, the text of the call's opening token, the mark begins."""
        if text.endswith(self._call_mark):
            self._call_marks.append(self._num_chars_fed + len(text) - len(self._call_mark))

    def _text_ids(self, output: StepOutput) -> list[int]:
        """Returns the tokens of the output whose text may be shown."""
        is_hidden = output.stop_token_id is not None and not self._shows(output.stop_token_id)
        return output.token_ids[:-1] if is_hidden else output.token_ids

    def _cut_off(
        self, output: StepOutput, text_ids: list[int], num_used: int, num_hidden: int
    ) -> StepOutput:
        """Returns the output as if a token limit had ended the choice at `num_used` tokens.

        If the engine has ended it there, the output stays as it is.
        """
        if num_used == len(text_ids) and output.finish_reason is not None:
            return output
        logger.warning(
            "request %s: choice %d ended at %d tokens: the last %d tokens gave no text except "
            "blanks, and the request has no token limit (--max-hidden-tokens)",
            self._request_id,
            self._index,
            self.num_tokens + num_used,
            num_hidden,
        )
        return msgspec.structs.replace(
            output,
            token_ids=text_ids[:num_used],
            finish_reason=FinishReason.LENGTH,
            stop_token_id=None,
        )

    def _output(self, deltas: Sequence[Delta], token_ids: list[int]) -> Output:
        return Output(self._index, join_deltas(deltas), token_ids, self._due_logprobs())

    def _shows(self, stop_token_id: int) -> bool:
        # either a stop token of the request or the model's own end token
        is_of_request = stop_token_id in self._stop_token_ids
        return self._includes_stop if is_of_request else self._shows_end_token

    def _feed(self, text: str, deltas: list[Delta], *, may_stop: bool) -> str | None:
        """Appends the deltas of `text` to `deltas`.

        Returns the stop string that ends the choice.
        """
        if not text:
            return None
        self._num_chars_fed += len(text)
        if not (may_stop and self._has_stop_strings):
            self._parse(text, deltas)
            return None
        result = self._stop.feed(text)
        if result.text:
            self._parse(result.text, deltas)
        return result.matched

    def _parse(self, text: str, deltas: list[Delta]) -> None:
        """Appends the deltas of the choice's next text to `deltas`."""
        signed = self._with_signs(text) if self._call_marks else text
        self._num_chars_given += len(text)
        if new := self._parser.feed(signed):
            self._count(new)
            deltas += new

    def _with_signs(self, text: str) -> str:
        """Returns the next text with a sign before each mark that opens a call."""
        shown, done = "", 0
        while self._call_marks and self._call_marks[0] < self._num_chars_given + len(text):
            at = self._call_marks.popleft() - self._num_chars_given
            shown, done = shown + text[done:at] + CONTROL_SIGN, at
        return shown + text[done:]

    def _count(self, new: Sequence[Delta]) -> None:
        """Counts reasoning tokens when their text comes out, without the marks and the space inside
        them.
        """
        was_reasoning, self._is_reasoning = self._is_reasoning, isinstance(new[-1], ReasoningDelta)
        if self._is_reasoning:
            self.num_reasoning_tokens += self._num_held_tokens if was_reasoning else 1
        self._num_held_tokens = 0

    def _due_logprobs(self) -> list[PositionLogprobs]:
        """Removes and returns the logprobs of tokens whose first character is out.

        Tokens of a hidden stop string stay.
        """
        due: list[PositionLogprobs] = []
        while self._held_logprobs and self._held_logprobs[0][0] < self._num_chars_given:
            due.append(self._held_logprobs.popleft()[1])
        return due

    def _finish(
        self,
        output: StepOutput,
        matched: str | None,
        deltas: list[Delta],
        token_ids: list[int],
        before: list[Output],
    ) -> list[Event]:
        """Returns the last events. `before` has the earlier outputs of the same step."""
        self.is_finished = True
        if matched is None:
            matched = self._feed(
                self._detokenizer.finish(), deltas, may_stop=self.num_tokens > self._min_tokens
            )
        if matched is None:
            held = self._stop.finish()
            if held:
                self._parse(held, deltas)
            if (
                output.stop_token_id is not None
                and not self._shows(output.stop_token_id)
                and self._scores_end_token
            ):
                self._held_logprobs += [
                    (self._num_chars_fed, position) for position in output.logprobs[-1:]
                ]
            # No more text comes: logprobs of tokens without text are due as well.
            self._num_chars_given = self._num_chars_fed + 1
            assert output.finish_reason is not None
            ends_by_request = output.stop_token_id in self._stop_token_ids
            finished = Finished(
                self._index, output.finish_reason, output.stop_token_id if ends_by_request else None
            )
        else:
            hidden = [
                logprobs
                for start, logprobs in self._held_logprobs
                if start >= self._num_chars_given
            ]
            finished = Finished(self._index, FinishReason.STOP, matched, hidden)
        if new := self._parser.finish(finished.reason):
            self._count(new)
            deltas += new
        last = self._output(deltas, token_ids)
        return [*join_outputs([*before, last] if deltas or token_ids else before), finished]
