"""`ouzel transcribe` turns sound files into text, on a server or with a model in its process.

The "sound files" of a server are texts, whose words its fake transcriber repeats.
"""

import signal
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import ouzel.demo
from ouzel.config import LimitsConfig
from tests.api.requests import wait_until
from tests.api.speech.listening import MAX_FILE_BYTES, ListeningServer, listening_server
from tests.serve.forks import run_command, start_command
from tests.terminal import at_terminal

RANDOM_WHISPER = Path(__file__).parents[1] / "backends" / "golden_speech" / "whisper"


@pytest.fixture(scope="module")
def listening() -> Iterator[ListeningServer]:
    with listening_server() as listening:
        yield listening


def write_sound(directory: Path, name: str, words: str) -> str:
    path = directory / name
    path.write_text(words)
    return str(path)


def run_transcribe(
    server: ListeningServer, *arguments: str, text: str = ""
) -> subprocess.CompletedProcess[str]:
    return run_command("transcribe", "--url", server.url, *arguments, text=text)


def write_silence(path: Path) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(32_000))
    return str(path)


def test_texts_come_in_the_order_of_the_files(listening: ListeningServer, tmp_path: Path) -> None:
    files = [write_sound(tmp_path, f"{number}.wav", f"file {number}") for number in range(20)]
    done = run_transcribe(listening, *files, "--max-concurrency", "7")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"file {number}\n" for number in range(20))


def test_a_file_that_fails_is_named_and_the_others_go_on(
    listening: ListeningServer, tmp_path: Path
) -> None:
    files = [
        write_sound(tmp_path, "first.wav", "one"),
        str(tmp_path / "missing.wav"),
        write_sound(tmp_path, "broken.wav", "two three fail"),
        write_sound(tmp_path, "empty.wav", ""),
        str(tmp_path),
        write_sound(tmp_path, "last.wav", "four"),
    ]
    done = run_transcribe(listening, *files)
    assert done.returncode == 1
    assert done.stdout == "one\nfour\n"
    assert sorted(done.stderr.splitlines()) == sorted(
        [
            f"ouzel: {files[1]}: the file cannot be read: No such file or directory",
            f"ouzel: {files[2]}: the engine lost this request",
            f"ouzel: {files[3]}: file must have at least one sample of sound",
            f"ouzel: {files[4]}: is a directory, not a sound file",
        ]
    )


def test_without_a_readable_file_nothing_is_asked(tmp_path: Path) -> None:
    done = run_command("transcribe", "--url", "http://localhost:1", str(tmp_path / "missing.wav"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_a_full_server_is_asked_again(tmp_path: Path) -> None:
    files = [write_sound(tmp_path, f"{number}.wav", f"file {number}") for number in range(20)]
    with listening_server(limits=LimitsConfig(max_queued_requests=1)) as listening:
        done = run_transcribe(listening, *files, "--max-concurrency", "8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"file {number}\n" for number in range(20))


def test_standard_input_is_a_file(listening: ListeningServer) -> None:
    done = run_transcribe(listening, "-", "--format", "json", text="one two")
    answer = msgspec.json.decode(done.stdout)
    assert (answer["file"], answer["text"]) == ("-", "one two")
    assert answer["usage"]["output_tokens"] == 2


@pytest.mark.parametrize(
    ("words", "subtitles"),
    [
        (
            (),
            "1\n00:00:00,000 --> 00:00:02,000\none two\n\n"
            "2\n00:00:02,000 --> 00:00:04,000\nthree\n\n",
        ),
        (
            ("--words",),
            "1\n00:00:00,000 --> 00:00:00,900\none\n\n"
            "2\n00:00:01,000 --> 00:00:01,900\ntwo\n\n"
            "3\n00:00:02,000 --> 00:00:02,900\nthree\n\n",
        ),
    ],
)
def test_subtitles_are_written_into_a_directory(
    listening: ListeningServer, tmp_path: Path, words: tuple[str, ...], subtitles: str
) -> None:
    files = [
        write_sound(tmp_path, "first.wav", "one two three"),
        write_sound(tmp_path, "second.mp3", "one two three"),
    ]
    directory = tmp_path / "new" / "subtitles"
    done = run_transcribe(
        listening, *files, "--format", "srt", *words, "--output-dir", str(directory)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name: path.read_text() for path in directory.iterdir()} == {
        "first.srt": subtitles,
        "second.srt": subtitles,
    }


def test_vtt_equals_the_answer_of_the_api(listening: ListeningServer, tmp_path: Path) -> None:
    file = write_sound(tmp_path, "speech.wav", "one two three")
    with listening.server.client() as http:
        answer = http.post(
            "/v1/audio/transcriptions",
            files={"file": ("speech.wav", b"one two three")},
            data={"response_format": "vtt"},
        )
    assert run_transcribe(listening, file, "--format", "vtt").stdout == answer.text


@pytest.mark.parametrize("words", [(), ("--words",)])
def test_verbose_json_equals_the_answer_of_the_api(
    listening: ListeningServer, tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = write_sound(tmp_path, "speech.wav", "one two three")
    granularities = ["segment", "word"] if words else []
    with listening.server.client() as http:
        answer = http.post(
            "/v1/audio/transcriptions",
            files={"file": ("speech.wav", b"one two three")},
            data={
                "response_format": "verbose_json",
                "timestamp_granularities[]": granularities,
            },
        )
    done = run_transcribe(listening, file, "--format", "verbose_json", *words)
    assert msgspec.json.decode(done.stdout) == {"file": file, **answer.json()}


def test_the_fields_are_sent(listening: ListeningServer, tmp_path: Path) -> None:
    file = write_sound(tmp_path, "speech.wav", "one")
    done = run_transcribe(
        listening,
        "--set",
        "beam_size=3",
        *("--language", "english", "--prompt", 'Ouzel, "dipper"', "--chunking", "auto"),
        "--translate",
        "--",
        file,
    )
    assert (done.returncode, done.stdout) == (0, "one\n")
    options = listening.repeater.options[-1]
    assert (options.task, options.language, options.prompt) == (
        "translate",
        "en",
        'Ouzel, "dipper"',
    )
    assert (options.chunking, options.beam_size) == ("vad", 3)


def test_ctrl_c_ends_after_the_files_that_are_done(
    listening: ListeningServer, tmp_path: Path
) -> None:
    repeater = listening.repeater
    num_waiting, num_aborted = repeater.num_waiting, repeater.num_aborted
    files = [write_sound(tmp_path, "a.wav", "one"), write_sound(tmp_path, "b.wav", "two wait")]
    process = start_command(("transcribe", "--url", listening.url, *files))
    assert process.stdout is not None and process.stdout.readline() == "one\n"
    wait_until(lambda: repeater.num_waiting > num_waiting)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert (process.returncode, output) == (130, "")
    assert errors == "ouzel: stopped; 1 of 2 files are done\n"
    wait_until(lambda: repeater.num_aborted > num_aborted)


def test_a_terminal_shows_the_progress(listening: ListeningServer, tmp_path: Path) -> None:
    file = write_sound(tmp_path, "long.wav", "one two three four wait never")
    command = (sys.executable, "-m", "ouzel", "transcribe", "--url", listening.url, file)
    with at_terminal(command) as terminal:
        terminal.read_until(lambda lines: bool(lines) and " 0:04 of 0:06" in lines[-1])
        bar = terminal.lines[-1].partition(" ")[0]
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.read_to_the_end() == 130
    assert bar == "█" * 16 + "·" * 8
    assert terminal.lines == ["ouzel: stopped; 0 of 1 files are done"]


def test_a_model_in_the_process(tmp_path: Path) -> None:
    files = [write_silence(tmp_path / name) for name in ("a.wav", "b.wav")]
    done = run_command(
        "transcribe",
        str(RANDOM_WHISPER),
        *("--max-num-seqs", "4"),
        *files,
        *("--format", "verbose_json", "--set", "temperature=1", "--set", "seed=3"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert [answer["file"] for answer in answers] == files
    assert [answer["duration"] for answer in answers] == [1.0, 1.0]
    assert all(answer["segments"] for answer in answers)


def test_a_model_that_chats_is_refused(tmp_path: Path) -> None:
    file = write_silence(tmp_path / "a.wav")
    model = next(path.parent for path in Path(ouzel.demo.__path__[0]).rglob("config.json"))
    done = run_command("transcribe", str(model), file)
    assert done.returncode == 2
    assert "is no speech model, such as openai/whisper-small" in done.stderr


def test_a_file_above_the_limit_of_the_server(listening: ListeningServer, tmp_path: Path) -> None:
    file = write_sound(tmp_path, "long.wav", "a " * MAX_FILE_BYTES)
    done = run_transcribe(listening, file)
    assert done.returncode == 1
    assert "max_audio_file_bytes" in done.stderr.replace("-", "_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model",), "FILE is required: ouzel transcribe MODEL FILE..."),
        (("--url", "localhost:1"), "FILE is required: ouzel transcribe FILE... --url URL"),
        (("model", "a", "--api-key", "x"), "--api-key: needs --url"),
        (("model", "a", "--model", "x"), "--model: needs --url"),
        (("model", "a", "--port", "1"), "--port: is an option of ouzel serve"),
        (("--url", "localhost:1", "a", "--max-num-seqs", "2"), "--max-num-seqs: cannot be used"),
        (("model", "a", "b", "--format", "srt"), "--format srt: needs --output-dir"),
        (("model", "a", "--words"), "--words: needs --format to be one of srt, vtt, verbose_json"),
        (
            ("model", "a", "--words", "--translate", "--format", "srt"),
            "--words: cannot be used with --translate",
        ),
        (("model", "a", "--set", "beam_size"), "--set: must be NAME=VALUE, given 'beam_size'"),
        (("model", "a", "--set", "stream=false"), "--set stream: the command always reads"),
        (("model", "a", "--max-concurrency", "0"), "must be a whole number from 1 to 1024"),
        (("model", "-", "-"), "FILE: - can be given once"),
        (
            ("--url", "localhost:1", "a/x.wav", "b/x.mp3", "--output-dir", "out"),
            "a/x.wav and b/x.mp3 would both be written to out/x.txt",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple[str, ...], message: str) -> None:
    done = run_command("transcribe", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
