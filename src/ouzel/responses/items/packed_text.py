"""Texts that clients hold for us, in what OpenAI calls encrypted content and Anthropic a signature.

    mark + base64url(digest ‖ text in UTF-8)

Here it is not encrypted: clients hold the text and may read it, as they may write any other message of their input. The
digest finds what was cut, altered or made elsewhere.
"""

import hashlib
from base64 import b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Packing:
    mark: str  # with the version
    person: bytes  # of the digest, so that nothing is taken for what it is not

    def pack(self, text: str) -> str:
        encoded = text.encode()
        digest = hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES, person=self.person).digest()
        return self.mark + urlsafe_b64encode(digest + encoded).decode()

    def unpack(self, content: str) -> str | None:
        """Returns None for what `pack` has not made."""
        try:
            packed = b64decode(content.removeprefix(self.mark), altchars=b"-_", validate=True)
            text = packed[_DIGEST_BYTES:].decode()
        except (Error, ValueError):
            return None
        return text if self.pack(text) == content else None


SUMMARY = Packing("ouzel-1.", b"ouzel-compaction")
CONTEXT = Packing("ouzel-context-1.", b"ouzel-context")
REASONING = Packing("ouzel-reasoning-1.", b"ouzel-reasoning")
THINKING = Packing("ouzel-thinking-1.", b"ouzel-thinking")
