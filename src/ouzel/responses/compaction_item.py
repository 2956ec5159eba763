"""A compaction item stands for what was said before: it holds the summary that a model has written of it.

    "ouzel-1." + base64url(digest ‖ summary in UTF-8)

OpenAI calls its content encrypted. Here it is not: clients hold it and may read it, as they may write any other message
of their input. The digest finds what was cut, altered or made elsewhere.
"""

import hashlib
from base64 import b64decode, urlsafe_b64encode
from binascii import Error

import msgspec

_MARK = "ouzel-1."
_DIGEST_BYTES = 16
_TEXT_FOR_MODEL = "[What was said before, summarised]\n{summary}\n[End of the summary]"


class CompactionItem(msgspec.Struct, frozen=True, tag_field="type", tag="compaction"):
    id: str
    encrypted_content: str


def pack(summary: str) -> str:
    text = summary.encode()
    digest = hashlib.blake2b(text, digest_size=_DIGEST_BYTES, person=b"ouzel-compaction").digest()
    return _MARK + urlsafe_b64encode(digest + text).decode()


def unpack(content: str) -> str | None:
    """Returns None for what `pack` has not made."""
    try:
        packed = b64decode(content.removeprefix(_MARK), altchars=b"-_", validate=True)
        summary = packed[_DIGEST_BYTES:].decode()
    except (Error, ValueError):
        return None
    return summary if pack(summary) == content else None


def text_for_model(summary: str) -> str:
    """Returns what a user's message says instead of all that was said before."""
    return _TEXT_FOR_MODEL.format(summary=summary)
