"""Packs texts that clients store and send back: encrypted content (OpenAI), signatures (Anthropic).

    mark + base64url(digest ‖ text in UTF-8)

The text is not encrypted: clients may read it, just as they may write any message of their input.
The digest detects a text that was cut or altered, or that another server packed.
"""

import hashlib
from base64 import b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Packing:
    """A format of packed texts; no text is valid in two formats."""

    mark: str  # the prefix of packed texts, with the version of the format
    person: bytes  # BLAKE2 personalization of the digest, different for each format

    def pack(self, text: str) -> str:
        encoded = text.encode()
        digest = hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES, person=self.person).digest()
        return self.mark + urlsafe_b64encode(digest + encoded).decode()

    def unpack(self, content: str) -> str | None:
        """Returns the text of a packed content, None for any other content."""
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
