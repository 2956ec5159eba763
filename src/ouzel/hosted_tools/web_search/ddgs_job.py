"""Asks public search engines with the package ddgs, in a limited process.

The package reads result pages, which are HTML of strangers, and sets no limit for their size. No
other module imports it; it is the extra `ddgs`.
"""

import logging
from collections.abc import Callable
from typing import Any  # Any: the package's hits

import msgspec


class DdgsQuery(msgspec.Struct, frozen=True):
    text: str
    num_hits: int


class DdgsAnswer(msgspec.Struct, frozen=True):
    hits: list[Any]
    fault: str | None = None


def create_ddgs_job(
    *, timeout_s: int, engines: str, ca_file: str | None
) -> Callable[[bytes], bytes]:
    """Returns a function from an encoded DdgsQuery to an encoded DdgsAnswer.

    `engines` lists names of the package, separated by commas; auto: the package chooses. `ca_file`
    names a file with the certificates to trust, in place of the public authorities.
    """
    logging.getLogger("ddgs").setLevel(logging.CRITICAL)
    from ddgs.ddgs import DDGS  # noqa: PLC0415  an extra
    from ddgs.exceptions import DDGSException  # noqa: PLC0415

    def run(encoded: bytes) -> bytes:
        query = msgspec.msgpack.decode(encoded, type=DdgsQuery)
        try:
            hits = DDGS(timeout=timeout_s, verify=ca_file or True).text(
                query.text, region="wt-wt", max_results=query.num_hits, backend=engines
            )
        except DDGSException as error:
            return msgspec.msgpack.encode(DdgsAnswer([], str(error)[:300]))
        return msgspec.msgpack.encode(DdgsAnswer(hits))

    return run
