"""Computes the keys of request bodies without a tokenizer.

It reads the bodies of chats, prompts, responses, and of Anthropic's, LMI's and Ollama's requests.

Rules
1. Prompt fields are taken as the JSON text of the client, which is alike in every turn; four bytes
   count as a token.
2. A picture counts as `PICTURE_BYTES` of its base64, about as many tokens as models make of it.
3. The work is bounded for any body: values are not decoded, only the first `MAX_TEXT_BYTES` of text
   have keys, and only the last `MAX_READ_BYTES` of a piece longer than `UNIT_BYTES` are read. Above
   `MAX_BODY_BYTES` there are no keys.
4. An unreadable body has no keys either: any replica may refuse it.
5. The server knows the history of a response's chain and of a conversation. Their ids begin with
   the digits of the chain's first id, which make the session.
"""

import hashlib
import re
from hashlib import blake2b
from itertools import islice

import msgspec

from ouzel.routing.keys import RequestKeys, chain_key, cut_pieces

UNIT_BYTES = 1024
BYTES_PER_TOKEN = 4
MAX_READ_BYTES = 512
MAX_TEXT_BYTES = 2**20
PICTURE_BYTES = 4096
MAX_BODY_BYTES = 8 * 2**20
_MAX_FIRST_TURN_BYTES = 32 * 2**10  # the first message of a user is searched within so many bytes
_MAX_FIRST_TURN_SIGNS = 2000  # and so many strings and brackets

_ROOT_DIGITS = 8
_CHAINED_ID = re.compile(rf"(?:resp|conv)_([0-9a-f]{{{_ROOT_DIGITS}}})[0-9a-f]{{40}}")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARK = rb'"cache_control"\s*:\s*\{[^{}]*\}'
# clients move this mark to the newest message
_CACHE_MARK = re.compile(rb",\s{0,8}" + _MARK + rb"|" + _MARK + rb",?\s{0,8}")
_SIGN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)  # a string or a bracket
# ordinary text does not match this at every examined place
_ENCODED = re.compile(rb"[A-Za-z0-9+/=_-]{64}")
_NOTHING = msgspec.Raw(b"")


class _Body(msgspec.Struct):
    """The fields that routing reads; the decoder skips all other fields."""

    # Fields that every turn repeats.
    model: msgspec.Raw = _NOTHING
    cache_salt: msgspec.Raw = _NOTHING
    adapters: msgspec.Raw = _NOTHING
    tools: msgspec.Raw = _NOTHING
    functions: msgspec.Raw = _NOTHING
    instructions: msgspec.Raw = _NOTHING
    system: msgspec.Raw = _NOTHING
    # Fields that grow.
    context: msgspec.Raw = _NOTHING
    messages: msgspec.Raw = _NOTHING
    input: msgspec.Raw = _NOTHING
    inputs: msgspec.Raw = _NOTHING
    prompt: msgspec.Raw = _NOTHING
    # Fields that name the conversation.
    previous_response_id: str | None = None
    conversation: msgspec.Raw = _NOTHING
    prompt_cache_key: str | None = None


class _Role(msgspec.Struct):
    role: str | None = None


class _Named(msgspec.Struct):
    id: str


_body = msgspec.json.Decoder(_Body)
_role = msgspec.json.Decoder(_Role)
_conversation = msgspec.json.Decoder(str | _Named | None)


def make_body_keys(body: bytes, *, salt: str = "") -> RequestKeys | None:
    """Returns the keys of a request; None if it has none.

    Bodies with different salts, for example of different API keys, share no keys.
    """
    if len(body) > MAX_BODY_BYTES:
        return None
    try:
        return _keys(_body.decode(body.removeprefix(_BYTE_ORDER_MARK)), salt)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def find_chain_root(chained_id: str) -> str:
    """Returns the common digits of all ids in a chain of responses or in a conversation.

    A foreign id has no such digits; the beginning of its SHA-256 replaces them, as in `responses`.
    """
    match = _CHAINED_ID.fullmatch(chained_id)
    if match is not None:
        return match[1]
    return hashlib.sha256(chained_id.encode(errors="replace")).hexdigest()[:_ROOT_DIGITS]


def _keys(body: _Body, salt: str) -> RequestKeys | None:
    fields = (body.context, body.messages, body.input, body.inputs, body.prompt)
    chain_id = body.previous_response_id or _conversation_id(body)
    beginnings = [text for field in fields if (text := _beginning(memoryview(field)))]
    if not beginnings and chain_id is None:
        return None
    repeated = (
        body.model,
        body.cache_salt,
        body.adapters,
        body.tools,
        body.functions,
        body.instructions,
        body.system,
    )
    head = b"\0".join((salt.encode(errors="replace"), *map(bytes, repeated)))
    grown = _without_pictures(b"".join(beginnings))
    if chain_id is not None:
        session = [salt.encode(errors="replace"), find_chain_root(chain_id).encode()]
    elif body.prompt_cache_key is not None:
        session = [head, body.prompt_cache_key.encode()]
    else:
        session = [head, _first_turn(grown)]
    return RequestKeys(
        session=blake2b(_without_marks(b"\0".join(session)), digest_size=8).digest(),
        blocks=_blocks(head + grown[:MAX_TEXT_BYTES]) if chain_id is None else (),
        num_tokens=(len(head) + len(grown)) // BYTES_PER_TOKEN,
        unit=UNIT_BYTES // BYTES_PER_TOKEN,
        is_continued=chain_id is not None,
    )


def _beginning(field: memoryview) -> bytes:
    """Returns a JSON text or list without its end, so that a longer one begins with it; else
    b"".
    """
    return bytes(field[:-1]).rstrip() if bytes(field[:1]) in (b'"', b"[") else b""


def _conversation_id(body: _Body) -> str | None:
    named = _conversation.decode(body.conversation) if body.conversation else None
    return named.id if isinstance(named, _Named) else named


def _without_pictures(text: bytes) -> bytes:
    """Shortens long base64 strings. The examined places depend only on the text before them."""
    kept: list[bytes] = []
    done, place = 0, PICTURE_BYTES
    while place < len(text):
        if _ENCODED.match(text, place):
            begin = max(done, text.rfind(b'"', done, place) + 1)
            end = text.find(b'"', place)
            place = end = len(text) if end < 0 else end
            if end - begin > 2 * PICTURE_BYTES and _ENCODED.match(text, begin + PICTURE_BYTES // 2):
                kept += [
                    text[done : begin + PICTURE_BYTES // 2],
                    text[end - PICTURE_BYTES // 2 : end],
                ]
                done = end
        place += PICTURE_BYTES
    return b"".join((*kept, text[done:])) if kept else text


def _first_turn(text: bytes) -> bytes:
    """Returns the messages up to the first one of a user.

    Without one, the beginning of the text.
    """
    depth = begin = 0
    for sign in islice(_SIGN.finditer(text, 0, _MAX_FIRST_TURN_BYTES), _MAX_FIRST_TURN_SIGNS):
        match sign[0]:
            case b"{" | b"[":
                depth += 1
                begin = sign.start() if depth == 2 else begin
            case b"}" | b"]":
                depth -= 1
                if depth == 1 and _read_role(text[begin : sign.end()]) == "user":
                    return text[: sign.end()]
    return text[:UNIT_BYTES]


def _read_role(message: bytes) -> str | None:
    try:
        return _role.decode(message).role
    except msgspec.MsgspecError:
        return None


def _without_marks(text: bytes) -> bytes:
    return _CACHE_MARK.sub(b"", text) if b'"cache_control"' in text else text


def _blocks(text: bytes) -> tuple[bytes, ...]:
    text = _without_marks(text)
    blocks: list[bytes] = []
    parent = b""
    for begin, end in cut_pieces(len(text), UNIT_BYTES):
        parent = chain_key(
            parent,
            text[begin:end] if end - begin == UNIT_BYTES else text[end - MAX_READ_BYTES : end],
        )
        blocks.append(parent)
    return tuple(blocks)
