"""Bodies of chats, prompts, responses, Anthropic's messages, LMI's and Ollama's requests have keys without a tokenizer.

Rules
1. Prompt fields are taken as the JSON that the client wrote, which clients write alike in every turn; four bytes count
   as a token.
2. A picture counts as `PICTURE_BYTES` of its base64, about as many tokens as models make of one.
3. Work is bounded whatever the body: it is scanned once, its first `MAX_TEXT_BYTES` of text have keys, and of a piece
   longer than `UNIT_BYTES` only the last `MAX_READ_BYTES` are read. Above `MAX_BODY_BYTES` there are no keys.
4. A body that cannot be read has no keys either: any replica may refuse it.
5. The history of a response's chain and of a conversation is the server's. Their ids begin with the digits of the
   chain's first one, which make the session.
"""

import hashlib
import re
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from ouzel.routing.keys import RequestKeys, chained, pieces

UNIT_BYTES = 1024
BYTES_PER_TOKEN = 4
MAX_READ_BYTES = 512
MAX_TEXT_BYTES = 2**20
PICTURE_BYTES = 4096
MAX_BODY_BYTES = 8 * 2**20
_MAX_FIRST_PARTS = 16  # in which a user's first is looked for

_ROOT_DIGITS = 8
_CHAINED_ID = re.compile(rf"(?:resp|conv)_([0-9a-f]{{{_ROOT_DIGITS}}})[0-9a-f]{{40}}")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CACHE_MARK = re.compile(rb',?\s*"cache_control"\s*:\s*\{[^{}]*\}')  # clients move it to what is newest
_NOTHING = msgspec.Raw(b"")


class _Body(msgspec.Struct):
    """Routing reads these fields; the decoder skips the others without making objects of them."""

    # What every turn repeats.
    model: msgspec.Raw = _NOTHING
    cache_salt: msgspec.Raw = _NOTHING
    adapters: msgspec.Raw = _NOTHING
    tools: msgspec.Raw = _NOTHING
    functions: msgspec.Raw = _NOTHING
    instructions: msgspec.Raw = _NOTHING
    system: msgspec.Raw = _NOTHING
    # What grows.
    context: msgspec.Raw = _NOTHING
    messages: list[msgspec.Raw] | None = None
    input: msgspec.Raw = _NOTHING
    inputs: msgspec.Raw = _NOTHING
    prompt: msgspec.Raw = _NOTHING
    # What names the conversation.
    previous_response_id: str | None = None
    conversation: msgspec.Raw = _NOTHING
    prompt_cache_key: str | None = None


class _Role(msgspec.Struct):
    role: str | None = None


class _Named(msgspec.Struct):
    id: str


_body = msgspec.json.Decoder(_Body)
_entries = msgspec.json.Decoder(list[msgspec.Raw])
_role = msgspec.json.Decoder(_Role)
_conversation = msgspec.json.Decoder(str | _Named | None)


def body_keys(body: bytes, *, salt: str = "") -> RequestKeys | None:
    """Returns the keys of a request, or None; bodies with different salts, as of API keys, have none in common."""
    if len(body) > MAX_BODY_BYTES:
        return None
    try:
        return _keys(_body.decode(body.removeprefix(_BYTE_ORDER_MARK)), salt)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def root_of(chained_id: str) -> str:
    """Returns the digits that all ids of a chain of responses, or of a conversation, have in common.

    An id that was made elsewhere has none; what stands for them is the beginning of its SHA-256, as `responses` has it.
    """
    match = _CHAINED_ID.fullmatch(chained_id)
    if match is not None:
        return match[1]
    return hashlib.sha256(chained_id.encode(errors="replace")).hexdigest()[:_ROOT_DIGITS]


def _keys(body: _Body, salt: str) -> RequestKeys | None:
    parts = _prompt_parts(body)
    chain_id = body.previous_response_id or _conversation_id(body)
    if parts is None and chain_id is None:
        return None
    repeated = (body.model, body.cache_salt, body.adapters, body.tools, body.functions, body.instructions, body.system)
    head = b"\0".join((salt.encode(errors="replace"), *map(bytes, repeated)))
    text, num_bytes = _beginning([head, *(parts or ())])
    if chain_id is not None:
        session = [salt.encode(errors="replace"), root_of(chain_id).encode()]
    elif body.prompt_cache_key is not None:
        session = [head, body.prompt_cache_key.encode()]
    else:
        session = [head, *_first_turn(text[1:])]
    return RequestKeys(
        session=blake2b(_without_marks(b"\0".join(session)), digest_size=8).digest(),
        blocks=_blocks(text) if chain_id is None else (),
        num_tokens=num_bytes // BYTES_PER_TOKEN,
        unit=UNIT_BYTES // BYTES_PER_TOKEN,
        is_continued=chain_id is not None,
    )


def _prompt_parts(body: _Body) -> Sequence[bytes | msgspec.Raw] | None:
    """Returns what grows in a conversation: its messages or items, or the beginning of a JSON text or list."""
    if body.messages is not None:
        return body.messages
    if _first_byte(body.input) == b"[":
        return _entries.decode(body.input)
    fields = (body.context, body.input, body.inputs, body.prompt)
    return [bytes(field)[:-1].rstrip() for field in fields if _first_byte(field) in (b'"', b"[")] or None


def _first_byte(field: msgspec.Raw) -> bytes:
    return bytes(memoryview(field)[:1])


def _conversation_id(body: _Body) -> str | None:
    named = _conversation.decode(body.conversation) if body.conversation else None
    return named.id if isinstance(named, _Named) else named


def _beginning(parts: Sequence[bytes | msgspec.Raw]) -> tuple[list[bytes], int]:
    """Returns the parts up to the limit, pictures shortened, and how many bytes all parts have."""
    beginning: list[bytes] = []
    num_bytes = 0
    for part in parts:
        if num_bytes < MAX_TEXT_BYTES:
            beginning.append(_without_pictures(bytes(part)))
            num_bytes += len(beginning[-1])
        else:
            num_bytes += memoryview(part).nbytes
    return beginning, num_bytes


def _first_turn(parts: Sequence[bytes]) -> list[bytes]:
    """Returns the parts up to the first of a user; of a text, which has no turns, the beginning."""
    first: list[bytes] = []
    for part in parts[:_MAX_FIRST_PARTS]:
        if part[:1] != b"{":
            return [*first, part[:UNIT_BYTES]]
        first.append(part)
        if _role.decode(part).role == "user":
            break
    return first


def _without_pictures(part: bytes) -> bytes:
    """Shortens the long strings in a part that are no text: those without a space, an escape or a letter of Unicode."""
    if len(part) <= 2 * PICTURE_BYTES:
        return part
    strings = part.split(b'"')
    return b'"'.join(_shortened(string) if len(string) > 2 * PICTURE_BYTES else string for string in strings)


def _shortened(string: bytes) -> bytes:
    begin = string[:PICTURE_BYTES]
    if b" " in begin or b"\\" in begin or not begin.isascii():
        return string
    return begin[: PICTURE_BYTES // 2] + string[-PICTURE_BYTES // 2 :]


def _without_marks(text: bytes) -> bytes:
    return _CACHE_MARK.sub(b"", text) if b'"cache_control"' in text else text


def _blocks(parts: Sequence[bytes]) -> tuple[bytes, ...]:
    text = _without_marks(b"".join(parts)[:MAX_TEXT_BYTES])
    blocks: list[bytes] = []
    parent = b""
    for begin, end in pieces(len(text), UNIT_BYTES):
        parent = chained(parent, text[begin:end] if end - begin == UNIT_BYTES else text[end - MAX_READ_BYTES : end])
        blocks.append(parent)
    return tuple(blocks)
