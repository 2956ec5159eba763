"""Searches without a key and without an instance of one's own, with the extra `ddgs`."""

import importlib.util
from functools import partial

import msgspec

from ouzel.extras import install_hint
from ouzel.hosted_tools.web_search.ddgs_job import DdgsAnswer, DdgsQuery
from ouzel.hosted_tools.web_search.hits import read_hits
from ouzel.hosted_tools.web_search.query_words import add_sites, count_hits
from ouzel.hosted_tools.web_search.records import Query, SearchHit, WebError
from ouzel.limited_process import JobEnded, LimitedProcess, Limits
from ouzel.worker_threads import WorkerThreads

_JOB = "ouzel.hosted_tools.web_search.ddgs_job:create_ddgs_job"
_MEMORY_BYTES = 2**30  # the address space of a process with a few threads
_MAX_AT_ONCE = 4
_MAX_WAITING = 64
_NO_HITS = "No results found."  # a message of the package

_ANSWER = msgspec.msgpack.Decoder(DdgsAnswer)


class Ddgs:
    """Asks public search engines. It belongs to one event loop."""

    def __init__(
        self, *, timeout_s: float, engines: str = "auto", ca_file: str | None = None
    ) -> None:
        """`engines` and `ca_file` are described at the job. Raises ValueError."""
        if importlib.util.find_spec("ddgs") is None:
            raise ValueError(f"web_search_provider: ddgs needs the extra: {install_hint('ddgs')}")
        # The package waits so long for one group of engines, then asks the next group.
        options = {"timeout_s": max(int(timeout_s / 4), 1), "engines": engines, "ca_file": ca_file}
        limits = Limits(wall_s=timeout_s, memory_bytes=_MEMORY_BYTES, cpu_s=timeout_s)
        self._process = LimitedProcess(_JOB, options, limits)
        self._threads = WorkerThreads("searches", _MAX_AT_ONCE, max_waiting=_MAX_WAITING)

    def close(self) -> None:
        self._threads.close()
        self._process.close()

    async def search(self, query: Query) -> list[SearchHit]:
        job = msgspec.msgpack.encode(DdgsQuery(add_sites(query), count_hits(query)))
        try:
            answer = _ANSWER.decode(await self._threads.run(partial(self._process.run, job)))
        except JobEnded as ended:
            raise WebError(f"the search engines cannot be asked: {ended}") from ended
        if answer.fault not in (None, _NO_HITS):
            raise WebError(f"the search engines cannot be asked: {answer.fault}")
        return read_hits(answer.hits, query, snippet="body", dates=[], url="href")
