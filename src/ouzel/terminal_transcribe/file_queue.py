"""Transcribes files, several at a time, and writes their outputs in the order of the files.

A file that fails is reported in one line, and the others go on.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence

from ouzel.client.base import ApiClient, ApiFailure
from ouzel.terminal.harmless import harmless, harmless_line
from ouzel.terminal_transcribe.flags import OutputFormat
from ouzel.terminal_transcribe.outputs import write_output
from ouzel.terminal_transcribe.sound_files import SoundFile, UnreadableFile, write_file
from ouzel.terminal_transcribe.sound_progress import SoundProgress
from ouzel.terminal_transcribe.transcript import SpeechRequest, Transcript, transcribe

_TRY_LATER = (429, 503)
_WAIT_S = 0.5


class FileQueue:
    """Runs once: `run` returns when every file is done."""

    def __init__(
        self,
        files: Sequence[SoundFile],
        request: SpeechRequest,
        output_format: OutputFormat,
        *,
        has_words: bool,
    ) -> None:
        self.num_done = 0
        self.num_failed = 0
        self._files = files
        self._request = request
        self._format: OutputFormat = output_format
        self._has_words = has_words
        self._progress = SoundProgress(sys.stderr, [file.num_bytes for file in files])
        self._outputs: dict[int, str] = {}  # wait for an earlier file; "": it failed
        self._num_written = 0

    async def run(self, api: ApiClient, max_concurrency: int) -> None:
        """Transcribes all files. Raises InvalidOption or OSError for an output that fails."""
        waiting = iter(list(enumerate(self._files)))
        workers = [
            asyncio.create_task(self._work(api, waiting))
            for _ in range(min(max_concurrency, len(self._files)))
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            self._progress.clear()

    async def _work(self, api: ApiClient, waiting: Iterator[tuple[int, SoundFile]]) -> None:
        """Transcribes one file after the other until none is left."""
        for place, file in waiting:
            self._progress.show()
            try:
                transcript = await self._transcribe(api, place, file)
            except (ApiFailure, UnreadableFile) as failure:
                self._fail(file.name, failure)
                output = ""
            else:
                output = write_output(
                    transcript, self._format, file.name, has_words=self._has_words
                )
                self.num_done += 1
                self._progress.tell(place, transcript.duration_s, transcript.duration_s)
            self._progress.end(place)
            self._write(place, output)
            self._progress.show()

    async def _transcribe(self, api: ApiClient, place: int, file: SoundFile) -> Transcript:
        """Asks again while the server has no room. Raises ApiFailure and UnreadableFile."""
        content = await file.read()

        def tell(done_s: float, duration_s: float) -> None:
            self._progress.tell(place, done_s, duration_s)

        while True:
            try:
                return await transcribe(api, self._request, file.filename, content, tell)
            except ApiFailure as failure:
                if failure.http_status not in _TRY_LATER:
                    raise
            await asyncio.sleep(_WAIT_S)

    def _fail(self, name: str, failure: ApiFailure | UnreadableFile) -> None:
        self.num_failed += 1
        status = failure.http_status if isinstance(failure, ApiFailure) else 0
        self._progress.clear()
        report_file(name, str(failure).removeprefix(f"{status}: "))

    def _write(self, place: int, output: str) -> None:
        """Writes the output of a file at once into its own file, or in turn to standard output."""
        path = self._files[place].output
        if path is not None:
            if output:
                write_file(path, output)
            return
        self._outputs[place] = output
        self._progress.clear()
        while self._num_written in self._outputs:
            text = self._outputs.pop(self._num_written)
            sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
            self._num_written += 1
        sys.stdout.flush()


def report_file(name: str, message: str) -> None:
    """Writes a line about a file that failed."""
    sys.stderr.write(f"ouzel: {harmless_line(f'{name}: {message}')}\n")
