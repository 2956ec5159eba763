"""An encoder runs in a thread, and is freed at every exit."""

import asyncio
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.audio.writing import sound_encoding
from ouzel.audio.writing.formats import FileFormat, choose_format
from ouzel.audio.writing.sound_encoding import SoundEncoding
from ouzel.audio.writing.writer import SoundWriter, make_writer
from ouzel.errors import InvalidRequest
from ouzel.worker_threads import WorkerThreads
from tests.audio.signals import make_tone
from tests.audio.writing.decoding import RATE, decode_file


class WatchedWriter:
    """A real writer that can be held up, and that notes its thread and its end."""

    def __init__(self, inner: SoundWriter) -> None:
        self._inner = inner
        self.may_write = threading.Event()
        self.is_writing = threading.Event()
        self.is_closed = threading.Event()
        self.threads: set[int] = set()

    def write(self, samples: NDArray[np.float32]) -> bytes:
        self.threads.add(threading.get_ident())
        self.is_writing.set()
        self.may_write.wait()
        assert not self.is_closed.is_set(), "closed while it writes"
        return self._inner.write(samples)

    def finish(self) -> bytes:
        return self._inner.finish()

    def close(self) -> None:
        self._inner.close()
        self.is_closed.set()


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[WatchedWriter]]:
    made: list[WatchedWriter] = []

    def make(format_: FileFormat, rate: int) -> WatchedWriter:
        made.append(WatchedWriter(make_writer(format_, rate)))
        return made[-1]

    monkeypatch.setattr(sound_encoding, "make_writer", make)
    yield made


async def test_blocks_are_encoded_in_a_thread(writers: list[WatchedWriter]) -> None:
    threads = WorkerThreads("sounds to encode", 1)
    encoding = SoundEncoding("mp3", RATE, threads, volume=0.5)
    writing = asyncio.create_task(encoding.write(make_tone(440, 1.0, RATE)))
    await asyncio.to_thread(_wait_until_writing, writers)
    writers[0].may_write.set()
    file = await writing + await encoding.finish()
    encoding.close()
    threads.close()
    assert writers[0].threads and threading.get_ident() not in writers[0].threads
    assert writers[0].is_closed.is_set()
    assert np.abs(decode_file(file, "mp3")).max() == pytest.approx(0.25, abs=0.03)


async def test_a_writer_at_work_is_closed_after_its_block(writers: list[WatchedWriter]) -> None:
    threads = WorkerThreads("sounds to encode", 1)
    encoding = SoundEncoding("opus", RATE, threads)
    writing = asyncio.create_task(encoding.write(make_tone(440, 1.0, RATE)))
    await asyncio.to_thread(_wait_until_writing, writers)
    writing.cancel()
    await asyncio.wait([writing])
    encoding.close()
    assert not writers[0].is_closed.is_set()
    writers[0].may_write.set()
    await asyncio.to_thread(writers[0].is_closed.wait)
    threads.close()


async def test_an_unused_encoding_can_be_closed(writers: list[WatchedWriter]) -> None:
    threads = WorkerThreads("sounds to encode", 1)
    encoding = SoundEncoding("aac", RATE, threads)
    encoding.close()
    assert await encoding.write(make_tone(440, 1.0, RATE)) == b""
    threads.close()
    assert not writers


def _wait_until_writing(writers: list[WatchedWriter]) -> None:
    while not writers:
        threading.Event().wait(0.005)
    writers[0].is_writing.wait()


def test_without_pyav_only_pcm_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_format(None) == "mp3"
    monkeypatch.setitem(sys.modules, "av", None)
    assert choose_format(None) == "wav"
    assert choose_format("pcm") == "pcm"
    with pytest.raises(InvalidRequest, match=r"response_format must be wav or pcm.*audio.*'mp3'"):
        choose_format("mp3")
