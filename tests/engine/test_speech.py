"""Tests sound in an engine: slots, the encoder between steps, the rules of a transcript."""

from collections.abc import Generator

import msgspec
import numpy as np
import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.alignments import Alignments
from ouzel.engine.core import EngineCore
from ouzel.engine.sampling.transcript_rules import apply_transcript_rules
from ouzel.engine.scheduling.audio_encoder import AudioEncoder
from ouzel.engine.scheduling.scheduler import Scheduled
from ouzel.engine.state.sequence import Sequence
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import AudioInput, EngineRequest, TranscriptRules
from ouzel.types.step_output import FinishReason
from tests.engine.fake_speech import NUM_FRAMES, FakeSpeechRunner
from tests.engine.requests import make_request, run, run_alone

PROMPT = [5, 6, 7]
INF = np.inf


def sound(number: int) -> AudioInput:
    features = np.full((2, NUM_FRAMES), number, np.float32).tobytes()
    return AudioInput(digest=number.to_bytes(4, "big"), shape=(2, NUM_FRAMES), features=features)


def request(
    number: int,
    *,
    max_tokens: int = 8,
    salt: str = "",
    rules: TranscriptRules | None = None,
    num_aligned_frames: int = 0,
) -> EngineRequest:
    made = make_request(PROMPT, max_tokens=max_tokens, cache_salt=salt or str(number))
    return msgspec.structs.replace(
        made,
        audio=sound(number),
        transcript_rules=rules,
        num_aligned_frames=num_aligned_frames,
    )


def tokens_alone(number: int, max_tokens: int = 8) -> list[int]:
    engine = EngineCore(FakeSpeechRunner())
    return run_alone(engine, request(number, max_tokens=max_tokens))[0].token_ids


def test_the_tokens_depend_on_the_sound() -> None:
    assert tokens_alone(1) != tokens_alone(2)


@pytest.mark.parametrize("num_slots", [1, 2, 5])
def test_many_sounds_share_few_slots(num_slots: int) -> None:
    engine = EngineCore(FakeSpeechRunner(num_slots=num_slots))
    requests = [request(number % 6) for number in range(12)]
    results = run(engine, requests)
    for number, each in enumerate(requests):
        assert results[each.request_id, 0].token_ids == tokens_alone(number % 6)


def test_requests_with_the_same_sound_share_its_slot() -> None:
    runner = FakeSpeechRunner()
    engine = EngineCore(runner)
    run(engine, [request(1), request(1), request(1)])
    run(engine, [request(1)])
    assert len(runner.encoded) == 1
    assert engine.stats().num_image_hits == 1  # the request that came later


def test_another_salt_shares_no_slot() -> None:
    runner = FakeSpeechRunner()
    run(EngineCore(runner), [request(1, salt="a"), request(1, salt="b")])
    assert len(runner.encoded) == 2


def test_one_part_of_the_encoder_runs_between_two_steps_of_a_stream() -> None:
    runner = FakeSpeechRunner(num_parts=5)
    engine = EngineCore(runner)
    stream = request(1, max_tokens=20)
    engine.add(stream)
    while engine.stats().num_running == 0 or runner.num_parts_run < 5:
        engine.step()
    engine.step()
    engine.add(request(2))
    counts = []
    while len(runner.encoded) < 2:
        before = runner.num_parts_run
        outputs = [each for each in engine.step() if each.request_id == stream.request_id]
        assert [len(each.token_ids) for each in outputs] == [1]
        counts.append(runner.num_parts_run - before)
    assert counts == [1] * 5


def test_preempted_sequences_find_their_sound_again() -> None:
    engine = EngineCore(FakeSpeechRunner(num_slots=2, num_blocks=8))
    requests = [request(number, max_tokens=20) for number in range(5)]
    results = run(engine, requests)
    for number, each in enumerate(requests):
        assert results[each.request_id, 0].token_ids == tokens_alone(number, 20)


def test_an_abort_during_the_encoding_leaves_the_others() -> None:
    runner = FakeSpeechRunner(num_parts=3, num_slots=1)
    engine = EngineCore(runner)
    stream, gone, last = request(1, max_tokens=12), request(2), request(3)
    engine.add(stream)
    engine.add(gone)
    engine.add(last)
    results = run(
        engine, after_step=lambda step: engine.abort(gone.request_id) if step == 1 else None
    )
    assert results[gone.request_id, 0].finish_reason is FinishReason.ABORT
    assert results[stream.request_id, 0].token_ids == tokens_alone(1, 12)
    assert results[last.request_id, 0].token_ids == tokens_alone(3)
    assert engine.stats().num_used_blocks == 0


def test_a_fault_of_the_encoder_ends_the_requests_with_this_sound() -> None:
    class BrokenRunner(FakeSpeechRunner):
        def encode_audio(self, audio: AudioInput, slot: int) -> Generator[None]:
            if audio.digest == sound(2).digest:
                raise RuntimeError("broken")
            yield from super().encode_audio(audio, slot)

    engine = EngineCore(BrokenRunner(num_slots=1))
    good, bad, later = request(1), request(2), request(3)
    results = run(engine, [good, bad, later])
    final = results[bad.request_id, 0].final
    assert final.finish_reason is FinishReason.ERROR
    assert final.error == "the audio encoder failed: broken"
    assert results[good.request_id, 0].token_ids == tokens_alone(1)
    assert results[later.request_id, 0].token_ids == tokens_alone(3)


@pytest.mark.parametrize("num_batched", [2, 16])
def test_an_alignment_has_a_row_for_each_token_of_the_prompt(num_batched: int) -> None:
    """With two tokens in a step the prompt is computed in two chunks."""
    engine = EngineCore(FakeSpeechRunner(max_num_seqs=2, max_num_batched_tokens=num_batched))
    aligned = request(3, max_tokens=0, salt="own", num_aligned_frames=2)
    results = run(engine, [aligned, request(1)])
    vector = results[aligned.request_id, 0].final.vector
    assert vector is not None
    rows = np.frombuffer(vector, "<f4").reshape(3, 2)
    assert rows.tolist() == [[5, 0], [6, 1], [7, 2]]


def test_an_alignment_computes_cached_tokens_but_no_encoded_sound_again() -> None:
    runner = FakeSpeechRunner()
    engine = EngineCore(runner)
    prompt = [5 + place for place in range(40)]
    for aligned_frames in (0, 2, 2):
        one = request(3, max_tokens=0, num_aligned_frames=aligned_frames)
        one = msgspec.structs.replace(one, prompt_token_ids=prompt)
        vector = run(engine, [one])[one.request_id, 0].final.vector
        assert len(vector or b"") == 4 * len(prompt) * aligned_frames
    assert len(runner.encoded) == 1


@pytest.mark.parametrize("chunks", [[(0, 2), (0, 1), (1, 3)], [(0, 2), (1, 3)], [(0, 1), (1, 3)]])
def test_a_prompt_that_is_computed_again_is_aligned_once(chunks: list[tuple[int, int]]) -> None:
    """A preemption takes all or some blocks of a prompt that was computed in part."""
    runner = FakeSpeechRunner()
    audio = AudioEncoder(runner, 1)
    alignments = Alignments(runner, audio)
    sequence = Sequence(request(3, max_tokens=0, num_aligned_frames=2), 0, 0)
    assert audio.advance([sequence], someone_decodes=False)
    for begin, end in chunks:
        sequence.num_computed_tokens = begin
        runner.queries = np.array([[each, each] for each in PROMPT[begin:end]], np.float32)
        alignments.note([Scheduled(sequence, end - begin, range(0))])
    vector = alignments.finish(sequence)
    assert vector is not None
    assert np.frombuffer(vector, "<f4").reshape(-1, 2)[:, 0].tolist() == [5, 6, 7]


def refuse(engine: EngineCore, **changes: object) -> str:
    refused = msgspec.structs.replace(request(1), **changes)
    final = run_alone(engine, refused)[0].final
    assert final.finish_reason is FinishReason.REFUSED
    assert final.error is not None
    return final.error


def test_requests_that_do_not_fit_the_model_are_refused() -> None:
    engine = EngineCore(FakeSpeechRunner())
    wrong = AudioInput(digest=b"", shape=(3, NUM_FRAMES), features=b"")
    short = AudioInput(digest=b"", shape=(2, NUM_FRAMES), features=b"\0")
    assert refuse(engine, audio=None) == "this model transcribes sound, and the request has none"
    assert "2 mel bins and 4 frames, given (3, 4)" in refuse(engine, audio=wrong)
    assert "4 bytes for each number, given 1" in refuse(engine, audio=short)
    assert "max_tokens 0" in refuse(engine, num_aligned_frames=1)
    assert refuse(EngineCore(FakeRunner())) == "this model reads no sound"


RULES = TranscriptRules(
    end_token_id=4, suppressed=(1,), suppressed_first=(0,), first_timestamp=6, max_first_timestamp=1
)


def allow(token_ids: list[int], logits: list[float], rules: TranscriptRules = RULES) -> list[int]:
    """Returns the tokens that the rules leave."""
    row = np.array(logits, np.float32)
    apply_transcript_rules(row, token_ids, rules)
    return np.flatnonzero(np.isfinite(row)).tolist()


TEXT_WINS = [5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 0.0, 0.0, 0.0, 0.0]
TIMES_WIN = [0.0] * 6 + [5.0] * 4


@pytest.mark.parametrize(
    ("token_ids", "logits", "left"),
    [
        ([], TEXT_WINS, [6, 7]),  # the first token is an early timestamp
        ([6], TEXT_WINS, [0, 2, 3, 4, 5]),  # a text follows
        ([6, 2], TEXT_WINS, [0, 2, 3, 4, 5, 7, 8, 9]),
        ([6, 2], TIMES_WIN, [7, 8, 9]),  # all timestamps together are more likely
        ([6, 2, 8], TEXT_WINS, [4, 5, 8, 9]),  # a timestamp or the end follows a single one
        ([6, 2, 8, 8], TEXT_WINS, [0, 2, 3, 4, 5]),  # no third timestamp
        ([6, 2, 8, 8, 3], TIMES_WIN, [9]),  # no earlier one, and no empty segment
    ],
)
def test_timestamps_come_in_pairs_and_never_decrease(
    token_ids: list[int], logits: list[float], left: list[int]
) -> None:
    assert allow(token_ids, logits) == left


def test_a_transcript_without_timestamps_only_suppresses() -> None:
    rules = msgspec.structs.replace(RULES, first_timestamp=None)
    assert allow([], TEXT_WINS, rules) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert allow([6], TIMES_WIN, rules) == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_the_logprobs_are_those_of_the_allowed_tokens() -> None:
    rules = TranscriptRules(end_token_id=96, suppressed=tuple(range(2, 97)))
    tuned = request(1, rules=rules, max_tokens=3)
    tuned = msgspec.structs.replace(
        tuned, params=msgspec.structs.replace(tuned.params, num_logprobs=2)
    )
    [result] = run_alone(EngineCore(FakeSpeechRunner()), tuned)
    assert set(result.token_ids) <= {0, 1}
    for each in result.logprobs:
        both = {top.token_id: top.logprob for top in each.top}
        assert np.exp([both[0], both[1]]).sum() == pytest.approx(1.0, abs=1e-5)


def test_a_beam_search_follows_the_rules_and_attends_to_the_sound() -> None:
    """With one beam it finds the tokens of a greedy choice."""
    rules = TranscriptRules(end_token_id=96, suppressed=tuple(range(1, 97, 2)))
    greedy = request(2, rules=rules)
    params = msgspec.structs.replace(greedy.params, beam_search=BeamSearchParams(width=1))
    searching = msgspec.structs.replace(request(2, rules=rules), params=params)
    [alone] = run_alone(EngineCore(FakeSpeechRunner()), greedy)
    [found] = run_alone(EngineCore(FakeSpeechRunner()), searching)
    assert found.token_ids == alone.token_ids
    assert all(token_id % 2 == 0 for token_id in found.token_ids)
    wide = msgspec.structs.replace(params, beam_search=BeamSearchParams(width=3))
    several = msgspec.structs.replace(request(2, rules=rules), params=wide)
    engine = EngineCore(FakeSpeechRunner())
    results = run(engine, [several, request(1)])
    assert all(token_id % 2 == 0 for token_id in results[several.request_id, 0].token_ids)
    assert engine.stats().num_used_blocks == 0
