"""Kokoro models load in each published form, and other directories are refused or left alone."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ouzel.backends.openvino.speaking.loader import create_speaking_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.pooling_engine import PoolingEngine
from ouzel.errors import ModelLoadError
from ouzel.kokoro_files.files import find_kokoro, order_graphs
from ouzel.model_store.model_directory import find_or_download
from ouzel.pooling import Pooling, Voice
from ouzel.sampling import SamplingParams
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput
from tests.kokoro_files.tiny_models import (
    LOUDNESS,
    SAMPLES,
    expect_value,
    make_onnx,
    make_table,
    write_archive_form,
    write_ir_form,
    write_onnx_form,
    write_voices,
)

FORMS = pytest.mark.parametrize("write", [write_onnx_form, write_archive_form, write_ir_form])
TOKEN_IDS = [50, 60, 70, 51, 61, 71]


def open_engine(path: Path, tmp_path: Path, **options: object) -> PoolingEngine:
    model = msgspec.convert(
        {"model": str(path), "cache_dir": str(tmp_path / "cache"), **options}, ModelConfig
    )
    local = find_or_download(model)
    return PoolingEngine(create_speaking_runner(local.put_paths_into(model), EngineConfig()))


def speak(engine: PoolingEngine, *voices: tuple[int, float], speed: float = 1.0) -> StepOutput:
    voice = Voice(voices=voices, speed=speed) if voices else None
    engine.add(
        EngineRequest(
            request_id="r",
            prompt_token_ids=TOKEN_IDS,
            params=SamplingParams(max_tokens=0),
            pooling=Pooling(voice=voice),
        )
    )
    [output] = engine.step()
    return output


def read_values(output: StepOutput) -> list[float]:
    """Returns the value of each token and of the padding around them."""
    assert output.vector is not None
    blocks = np.frombuffer(output.vector, "<f4").reshape(-1, SAMPLES)
    assert (blocks == blocks[:, :1]).all()
    values: list[float] = blocks[:, 0].tolist()
    return values


def expect_values(loudness: float, speed: float = 1.0) -> list[float]:
    num_tokens = len(TOKEN_IDS)
    spoken = [
        expect_value(each, loudness=loudness, num_tokens=num_tokens, speed=speed)
        for each in TOKEN_IDS
    ]
    return [0.0, *spoken, 0.0]


@FORMS
def test_each_form_speaks_in_its_voices(write: Callable[[Path], Path], tmp_path: Path) -> None:
    engine = open_engine(write(tmp_path / "tiny"), tmp_path)
    info = engine.info
    assert info.speech is not None
    assert info.speech.voices == tuple(sorted(LOUDNESS))
    assert (info.task, info.max_model_len, info.vocab_size) == ("speak", 510, 178)
    for index, name in enumerate(info.speech.voices):
        values = read_values(speak(engine, (index, 1.0)))
        assert values == pytest.approx(expect_values(LOUDNESS[name]), rel=1e-3)


def test_a_mix_of_voices_is_the_mean_of_their_rows(tmp_path: Path) -> None:
    engine = open_engine(write_onnx_form(tmp_path / "tiny"), tmp_path)
    values = read_values(speak(engine, (0, 0.75), (1, 0.25)))
    assert values == pytest.approx(expect_values(0.75 * 0.5 + 0.25 * 0.25), rel=1e-3)


@pytest.mark.parametrize("has_integer_speed", [False, True])
def test_any_speed_reaches_the_model(tmp_path: Path, *, has_integer_speed: bool) -> None:
    directory = write_onnx_form(tmp_path / "tiny", has_integer_speed=has_integer_speed)
    values = read_values(speak(open_engine(directory, tmp_path), (0, 1.0), speed=1.25))
    assert values == pytest.approx(expect_values(0.5, speed=1.25), rel=1e-3)


def test_the_engine_refuses_voices_that_are_not_there(tmp_path: Path) -> None:
    engine = open_engine(write_onnx_form(tmp_path / "tiny"), tmp_path)
    cases = {(): "needs a voice", ((3, 1.0),): "from 0 to 2", ((0, 0.5),): "sum to 1"}
    for voices, fault in cases.items():
        output = speak(engine, *voices)
        assert output.finish_reason is FinishReason.REFUSED
        assert fault in (output.error or "")
    output = speak(engine, (0, 1.0), speed=float("nan"))
    assert "speed" in (output.error or "")


def test_the_tokenizer_reads_phonemes_and_drops_other_characters(tmp_path: Path) -> None:
    model = ModelConfig(
        model=str(write_onnx_form(tmp_path / "tiny")), cache_dir=str(tmp_path / "cache")
    )
    tokenizer = load_tokenizer(find_or_download(model).directory)
    assert tokenizer.encode("a $b😀\n.", add_special_tokens=False) == [43, 16, 44, 4]
    assert tokenizer.encode("a\u0303", add_special_tokens=False) == [43, 17]  # a tilde of its own


def test_a_vocabulary_of_the_model_counts_before_ours(tmp_path: Path) -> None:
    directory = write_onnx_form(tmp_path / "tiny")
    content = {"model": {"vocab": {"$": 0, "x": 1, "y": 2}}}
    (directory / "tokenizer.json").write_text(json.dumps(content))
    model = ModelConfig(model=str(directory), cache_dir=str(tmp_path / "cache"))
    tokenizer = load_tokenizer(find_or_download(model).directory)
    assert tokenizer.encode("yax", add_special_tokens=False) == [2, 1]


def test_a_changed_model_is_made_again(tmp_path: Path) -> None:
    directory = write_onnx_form(tmp_path / "tiny")
    assert len(open_engine(directory, tmp_path).info.speech.voices) == 3  # type: ignore[union-attr]
    make_table(0.1).tofile(directory / "voices" / "zf_new.bin")
    assert len(open_engine(directory, tmp_path).info.speech.voices) == 4  # type: ignore[union-attr]


def test_an_onnx_file_can_be_named(tmp_path: Path) -> None:
    directory = write_onnx_form(tmp_path / "tiny")
    (directory / "onnx" / "model_quantized.onnx").write_bytes(make_onnx())
    found = find_kokoro(directory / "onnx" / "model_quantized.onnx")
    assert found is not None
    assert (found.root, found.graph.name) == (directory, "model_quantized.onnx")
    engine = open_engine(found.graph, tmp_path)
    assert read_values(speak(engine, (0, 1.0))) == pytest.approx(expect_values(0.5), rel=1e-3)


def test_the_graph_with_the_largest_weights_is_chosen() -> None:
    names = ["model_q4.onnx", "model_quantized.onnx", "model_fp16.onnx", "model.onnx"]
    assert [path.name for path in order_graphs([Path(each) for each in names])] == [
        "model.onnx",
        "model_fp16.onnx",
        "model_quantized.onnx",
        "model_q4.onnx",
    ]


def test_the_weights_of_pytorch_are_refused_with_the_form_that_works(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"istftnet": {}, "vocab": {"a": 1}}))
    (tmp_path / "kokoro-v1_0.pth").touch()
    with pytest.raises(ModelLoadError, match=r"onnx-community/Kokoro-82M-v1\.0-ONNX"):
        find_or_download(ModelConfig(model=str(tmp_path)))


def test_other_models_are_left_alone(tmp_path: Path) -> None:
    write_voices(tmp_path / "voices")
    (tmp_path / "model.onnx").touch()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert find_kokoro(tmp_path) is None
    assert find_kokoro(tmp_path / "config.json") is None


def test_voices_of_another_model_are_refused(tmp_path: Path) -> None:
    """KittenTTS has the same type, and voices of one row."""
    directory = write_onnx_form(tmp_path / "tiny")
    make_table(0.5, num_rows=1).tofile(directory / "voices" / "expr-voice.bin")
    with pytest.raises(ModelLoadError, match="no voice of a Kokoro model"):
        open_engine(directory, tmp_path)


def test_voices_that_are_no_files_are_left_out(tmp_path: Path) -> None:
    directory = write_onnx_form(tmp_path / "tiny")
    (directory / "voices" / "af_gone.bin").symlink_to("../blobs/gone")
    (directory / "voices" / "af_room.bin").mkdir()
    info = open_engine(directory, tmp_path).info
    assert info.speech is not None
    assert info.speech.voices == tuple(sorted(LOUDNESS))


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY\x01\x00", b"x"])
def test_a_broken_array_is_refused(content: bytes, tmp_path: Path) -> None:
    directory = write_onnx_form(tmp_path / "tiny")
    (directory / "voices" / "af_broken.npy").write_bytes(content)
    with pytest.raises(ModelLoadError, match=r"af_broken\.npy is no array of NumPy"):
        open_engine(directory, tmp_path)


def test_an_archive_with_other_files_is_refused(tmp_path: Path) -> None:
    directory = write_archive_form(tmp_path / "tiny")
    with zipfile.ZipFile(directory / "voices-v1.0.bin", "a") as archive:
        archive.writestr("README.txt", "Voices.")
    with pytest.raises(ModelLoadError, match="no voice of a Kokoro model"):
        open_engine(directory, tmp_path)


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    directory = write_archive_form(tmp_path / "tiny")
    archive = directory / "voices-v1.0.bin"
    content = bytearray(archive.read_bytes())
    content[1000:1100] = bytes(100)  # the checksum of the first voice is wrong
    archive.write_bytes(content)
    with pytest.raises(ModelLoadError, match="no archive of NumPy arrays"):
        open_engine(directory, tmp_path)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"task": "embed"}, "task embed"),
        ({"weights": "int8"}, "weights must be auto"),
        ({"max_model_len": 600}, "600"),
        ({"lora": ["a=b"]}, "lora"),
    ],
)
def test_options_of_other_models_are_refused(
    options: dict[str, object], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=fault):
        open_engine(write_onnx_form(tmp_path / "tiny"), tmp_path, **options)
