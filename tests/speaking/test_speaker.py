"""Texts become sound through the real engine, part by part; closing a stream ends the work."""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.observability.metrics import exposition
from ouzel.speaking import SpeechOptions, SpokenPart
from tests.kokoro_files.tiny_models import LOUDNESS, SAMPLES, expect_value
from tests.speaking.speakers import accepted, may_step, run_speaker, spoken

LONG = "One sentence that is long enough to stand alone here. " * 8


def join(parts: list[SpokenPart]) -> NDArray[np.float32]:
    return np.concatenate([part.samples for part in parts])


def find_loudest(parts: list[SpokenPart]) -> float:
    return float(join(parts).max())


async def test_a_text_is_spoken_in_parts_with_pauses_between_them(tmp_path: Path) -> None:
    async with run_speaker(tmp_path) as running:
        parts = await running.speak(LONG)
    assert len(parts) >= 3
    assert len(parts[0].samples) < len(parts[1].samples)  # the first part comes soon
    assert sum(part.num_tokens for part in parts) >= len(LONG) - 24  # no token: g, some spaces
    # the last pause of each part but the last is a quarter of a second of silence
    for part in parts[:-1]:
        assert not part.samples[-int(0.25 * 24_000) :].any()
    assert parts[-1].samples[-2 * SAMPLES * 5 :].any()
    assert all(part.samples.dtype == np.float32 for part in parts)


async def test_voices_mixes_and_names_of_openai_reach_the_model(tmp_path: Path) -> None:
    bella, echo = LOUDNESS["af_bella"], LOUDNESS["am_echo"]
    cases = {
        "af_bella": bella,
        "coral": bella,
        "echo": echo,
        "af_bella(3)+am_echo(1)": 0.75 * bella + 0.25 * echo,
        "af_bella + am_echo": (bella + echo) / 2,
    }
    async with run_speaker(tmp_path) as running:
        for voice, loudness in cases.items():
            parts = await running.speak("zzzzzzzz", voice)
            token_id = accepted[-1].prompt_token_ids[0]
            expected = expect_value(token_id, loudness=loudness, num_tokens=8)
            assert find_loudest(parts) == pytest.approx(expected, rel=1e-3)


async def test_speeds_beyond_the_models_own_are_stretched(tmp_path: Path) -> None:
    """The tiny model divides its samples by the speed, so they tell which speed it got."""
    async with run_speaker(tmp_path) as running:
        [plain] = await running.speak("z" * 40)
        [slow] = await running.speak("z" * 40, speed=0.25)
        [fast] = await running.speak("z" * 40, speed=4.0)
    speeds = [each.pooling.voice.speed for each in accepted]  # type: ignore[union-attr]
    assert speeds == [1.0, 0.8, 2.0]
    assert len(slow.samples) == pytest.approx(0.8 / 0.25 * len(plain.samples), rel=0.25)
    assert len(fast.samples) == pytest.approx(len(plain.samples) / 2, rel=0.25)


@pytest.mark.parametrize(
    ("options", "param", "fault"),
    [
        (SpeechOptions("Hi", "bob"), "voice", "given 'bob'"),
        (SpeechOptions("Hi", "bob"), "voice", "af_bella, am_echo, ef_dora"),
        (SpeechOptions("Hi", "af_bella(0)"), "voice", "weights above 0"),
        (SpeechOptions("Hi", "af_bella+"), "voice", "must be a voice, or a mix"),
        (SpeechOptions("Hi", "+".join(["echo"] * 17)), "voice", "at most 16"),
        (SpeechOptions("Hi", f"echo{' ' * 10**6}x"), "voice", "must be a voice, or a mix"),
        (SpeechOptions("Hi", f"echo({' ' * 10**6}x"), "voice", "must be a voice, or a mix"),
        (SpeechOptions("  \n", "echo"), "input", "must not be empty"),
        (SpeechOptions("😀 …", "echo"), "input", "can be spoken"),
        (SpeechOptions("Hi", "echo", speed=4.5), "speed", "0.25 to 4.0, given 4.5"),
        (SpeechOptions("Hi", "echo", speed=float("nan")), "speed", "given nan"),
        (SpeechOptions("Hi", "echo", language="ja"), "language", "given ja"),
    ],
)
async def test_faults_name_their_field_before_anything_runs(
    options: SpeechOptions, param: str, fault: str, tmp_path: Path
) -> None:
    async with run_speaker(tmp_path) as running:
        with pytest.raises(InvalidRequest) as raised:
            running.speaker.check(options)
    assert raised.value.param == param
    assert fault in str(raised.value)
    assert not accepted


async def test_a_text_without_phonemes_is_the_clients_fault(tmp_path: Path) -> None:
    async with run_speaker(tmp_path) as running:
        with pytest.raises(InvalidRequest, match="can be spoken") as raised:
            await running.speak("日本")
    assert raised.value.param == "input"


async def test_two_texts_share_the_engine_part_by_part(tmp_path: Path) -> None:
    async with run_speaker(tmp_path) as running:

        async def speak(name: str) -> None:
            async for _ in running.open(SpeechOptions(LONG, "echo"), name):
                pass

        may_step.clear()
        both = asyncio.gather(speak("a"), speak("b"))
        while len(running.engine.open_request_ids) < 4:  # two parts of each text
            await asyncio.sleep(0.01)
        spoken.clear()
        may_step.set()
        await both
    order = [name.partition(".")[0] for name in spoken]
    assert sorted(order[:2]) == sorted(order[2:4]) == ["a", "b"]
    assert order.count("a") == order.count("b") >= 3


async def test_the_first_part_of_a_text_goes_before_later_parts_of_others(tmp_path: Path) -> None:
    async with run_speaker(tmp_path) as running:
        await running.speak(LONG)
    assert [each.priority for each in accepted] == [-1] + [0] * (len(accepted) - 1)


async def test_a_closed_stream_aborts_its_requests(tmp_path: Path) -> None:
    async with run_speaker(tmp_path) as running:
        parts = running.open(SpeechOptions(LONG, "echo"))
        await anext(parts)
        may_step.clear()  # the requests under way stay in the engine
        await parts.aclose()
        assert running.engine.open_request_ids == ()
        may_step.set()
        [part] = await running.speak("Another text.")
    assert len(part.samples)
    assert len(accepted) <= 2 + 1  # the closed text has five parts


async def test_no_more_than_two_parts_are_in_the_engine(tmp_path: Path) -> None:
    async with run_speaker(tmp_path) as running:
        may_step.clear()
        parts = running.open(SpeechOptions(LONG, "echo"))
        first = asyncio.create_task(anext(parts))
        while len(running.engine.open_request_ids) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # a third part would come now
        assert len(running.engine.open_request_ids) == 2
        may_step.set()
        await first
        await parts.aclose()


async def test_64_texts_at_once_have_the_sound_that_they_have_alone(tmp_path: Path) -> None:
    texts = [f"{'abcdefghi'[index % 9] * (8 + index)}. And more." for index in range(64)]
    async with run_speaker(tmp_path) as running:
        alone = [join(await running.speak(text)) for text in texts]
        together = await asyncio.gather(*(running.speak(text) for text in texts))
    assert all(np.array_equal(one, join(many)) for one, many in zip(alone, together, strict=True))


async def test_the_metrics_count_phonemes_and_the_end(tmp_path: Path) -> None:
    async with run_speaker(tmp_path) as running:
        [part] = await running.speak("Hello there, all.")
        text = exposition([(running.metrics, ())])
    assert part.num_tokens == len(accepted[0].prompt_token_ids)
    [line] = [each for each in text.splitlines() if each.startswith("vllm:prompt_tokens_total")]
    assert float(line.split()[-1]) == part.num_tokens


async def test_the_first_piece_is_spoken_before_the_phonemes_of_the_second_are_known(
    tmp_path: Path,
) -> None:
    class Waiting:
        def to_phonemes(self, text: str) -> str:
            if "second" in text:
                while not accepted:
                    time.sleep(0.001)
            return text.lower()

    async with run_speaker(tmp_path, lambda language: Waiting()) as running:
        parts = await running.speak(f"The first piece of the text. {'A second piece. ' * 8}")
    assert len(parts) >= 2
    assert not parts[0].samples[-int(0.25 * 24_000) :].any()  # the pause between them
    assert parts[-1].samples[-2 * SAMPLES * 5 :].any()
