"""A detector that is a model rates the same frames for whole sounds and for pieces."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.audio.sound import Sound
from ouzel.backends.openvino.library import op, ops, ov
from ouzel.backends.openvino.voice_detector import VoiceDetector
from ouzel.config.audio import AudioConfig
from ouzel.errors import ModelLoadError
from ouzel.serve.open_speech import open_voice_detector
from ouzel.transcription.model_activity import ModelDetector

FRAME, CONTEXT, STATE = 512, 64, 128
MakeModel = Callable[[], ov.Model]


def make_model(input_name: str = "input") -> ov.Model:
    """Makes a model with silero's inputs and outputs.

    A frame's probability is the mean of its absolute samples, context included, plus a thousandth
    of the number of frames before this run: it depends on the context and on the state.
    """
    frames = op.Parameter(ov.Type.f32, ov.PartialShape([-1, CONTEXT + FRAME]))
    h = op.Parameter(ov.Type.f32, ov.PartialShape([1, 1, STATE]))
    c = op.Parameter(ov.Type.f32, ov.PartialShape([1, 1, STATE]))
    for parameter, name in ((frames, input_name), (h, "h"), (c, "c")):
        parameter.output(0).set_names({name})
    means = ops.reduce_mean(ops.abs(frames), np.array([1], np.int32), False)
    seen = ops.reduce_mean(h, np.array([0, 1, 2], np.int32), False)
    values = ops.add(means, ops.multiply(seen, np.float32(0.001)))
    number = ops.convert(ops.gather(ops.shape_of(frames), np.int32(0), np.int32(0)), "f32")
    outputs = (
        (ops.unsqueeze(ops.unsqueeze(values, np.int32(1)), np.int32(1)), "speech_probs"),
        (ops.add(h, number), "hn"),
        (ops.add(c, number), "cn"),
    )
    results = []
    for node, name in outputs:
        node.output(0).set_names({name})
        results.append(op.Result(node.output(0)))
    return ov.Model(results, [frames, h, c], "detector")


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> ModelDetector:
    path = tmp_path_factory.mktemp("detector") / "detector.xml"
    ov.save_model(make_model(), path, compress_to_fp16=False)
    found = open_voice_detector(AudioConfig(vad_model=str(path)))
    assert found is not None
    return found


def compute_expected(samples: NDArray[np.float32], sizes: list[int]) -> NDArray[np.float32]:
    """Returns the means of the frames with their context; runs have these numbers of frames."""
    padded = np.pad(samples.astype(np.float64), (CONTEXT, -len(samples) % FRAME))
    number = (len(padded) - CONTEXT) // FRAME
    means = [
        np.abs(padded[each * FRAME : each * FRAME + CONTEXT + FRAME]).mean()
        for each in range(number)
    ]
    before = np.repeat(np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)[:number]
    return (np.array(means) + before * 0.001).astype(np.float32)


@pytest.mark.parametrize("num_samples", [1, FRAME, 1000 * FRAME + 17, 1100 * FRAME])
def test_whole_sounds_are_rated_in_blocks_that_carry_the_state(
    detector: ModelDetector, num_samples: int
) -> None:
    random = np.random.default_rng(1)
    samples = random.integers(-9000, 9000, num_samples).astype(np.float32) / np.float32(32768)
    with Sound.from_samples(samples) as sound:
        found = detector.find_speech(sound)
    assert found.frame_samples == FRAME
    expected = compute_expected(samples, [256] * 5)
    np.testing.assert_allclose(found.values, expected, atol=1e-4)


def test_a_sound_without_samples_has_no_frames(detector: ModelDetector) -> None:
    with Sound.from_samples(np.empty(0, np.float32)) as sound:
        assert len(detector.find_speech(sound).values) == 0


@pytest.mark.parametrize("size", [1, 300, 512, 5000])
def test_pieces_of_a_live_sound_are_rated_when_their_frame_is_whole(
    detector: ModelDetector, size: int
) -> None:
    samples = np.random.default_rng(2).normal(0, 0.1, 3 * FRAME + 100).astype(np.float32)
    live = detector.start_live()
    found = [live.push(samples[at : at + size]) for at in range(0, len(samples), size)]
    sizes = [len(each) for each in found if len(each)]
    assert sum(sizes) == 3
    expected = compute_expected(samples[: 3 * FRAME], sizes)
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-4)


def test_sounds_do_not_share_a_state(detector: ModelDetector) -> None:
    samples = np.full(FRAME, 0.5, np.float32)
    one, two = detector.start_live(), detector.start_live()
    first = one.push(samples)
    one.push(samples)
    np.testing.assert_array_equal(two.push(samples), first)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(ModelLoadError, match=r"vad_model: .*model\.onnx is no ONNX file"):
        VoiceDetector(path)


def test_another_model_is_refused_by_its_inputs(tmp_path: Path) -> None:
    path = tmp_path / "other.xml"
    ov.save_model(make_model("audio"), path)
    with pytest.raises(ModelLoadError, match=r"silero_vad_16k_sequence\.onnx.* it has audio"):
        VoiceDetector(path)


def test_without_the_option_no_model_is_loaded() -> None:
    assert open_voice_detector(AudioConfig()) is None
