"""Runs `ouzel transcribe`: turns sound files into text, on a server or in this process."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import uvloop

from ouzel.client.base import ApiClient
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.signals import stop_signals
from ouzel.terminal_transcribe.file_queue import FileQueue, report_file
from ouzel.terminal_transcribe.flags import (
    Arguments,
    TranscribeFlags,
    read_arguments,
    read_fields,
    transcribe_flags,
)
from ouzel.terminal_transcribe.outputs import ENDINGS
from ouzel.terminal_transcribe.sound_files import (
    SoundFile,
    UnreadableFile,
    find_sound,
    name_outputs,
)
from ouzel.terminal_transcribe.transcript import SpeechRequest

_STOPPED = 130  # exit status of a program that Ctrl-C has ended


def run(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status. Raises OuzelError."""
    # The encoding of a terminal may lack characters of a text.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    given = read_arguments(arguments)
    flags, fields = given.flags, read_fields(given.flags)
    opening = _connect(flags) if flags.url else _open_model(given)
    files, num_missing = _find_sounds(given)
    if not files:
        return 1
    request = SpeechRequest("translate" if flags.translate else "transcribe", fields)
    queue = FileQueue(files, request, flags.format, has_words=flags.words)
    if uvloop.run(_run(queue, opening, flags.max_concurrency)):
        sys.stderr.write(f"ouzel: stopped; {queue.num_done} of {len(given.files)} files are done\n")
        return _STOPPED
    return int(num_missing + queue.num_failed > 0)


def _find_sounds(given: Arguments) -> tuple[list[SoundFile], int]:
    """Returns the files, and the number of files that are missing; reports these."""
    flags = given.flags
    outputs = name_outputs(given.files, flags.output_dir, ENDINGS[flags.format])
    files: list[SoundFile] = []
    for name, output in zip(given.files, outputs, strict=True):
        try:
            files.append(find_sound(name, output))
        except UnreadableFile as failure:
            report_file(name, str(failure))
    return files, len(given.files) - len(files)


def _connect(flags: TranscribeFlags) -> AbstractAsyncContextManager[ApiClient]:
    """Makes the context of a client of the server. Raises ApiFailure."""
    from ouzel.client.http_client import HttpClient, tls_context  # noqa: PLC0415  only with --url

    api_key = flags.api_key or os.environ.get("OPENAI_API_KEY", "")
    tls = tls_context(ca_file=flags.ca_file)

    @asynccontextmanager
    async def opened() -> AsyncGenerator[ApiClient, None]:
        client = HttpClient(flags.url, api_key=api_key, tls=tls)
        try:
            yield client
        finally:
            await client.close()

    return opened()


def _open_model(given: Arguments) -> AbstractAsyncContextManager[ApiClient]:
    """Reads the options of the model and makes the context of its app. Raises OuzelError."""
    from ouzel.serve import in_process_app as app  # noqa: PLC0415  only without --url
    from ouzel.serve.files_of_model import read_files_of_model  # noqa: PLC0415  as above

    options, model = app.read_own_model(
        given.model_arguments, command="transcribe", other_flags=transcribe_flags()
    )
    task = read_files_of_model(model.local.directory, options.model.task).task
    if task not in (None, "transcribe"):
        raise InvalidOption(
            f"{given.model_arguments[0]}: is no speech model, such as openai/whisper-small"
        )
    return app.in_process_app(options, model)


async def _run(
    queue: FileQueue, opening: AbstractAsyncContextManager[ApiClient], max_concurrency: int
) -> bool:
    """Runs the files; after Ctrl-C or SIGTERM it aborts the running ones and returns True."""

    async def work() -> None:
        async with opening as api:
            await queue.run(api, max_concurrency)

    stopping, _ = stop_signals()
    working = asyncio.create_task(work())
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    is_stopped = not working.done()
    stopped.cancel()
    working.cancel()
    await asyncio.wait((working,))
    if not is_stopped:
        working.result()
    return is_stopped
