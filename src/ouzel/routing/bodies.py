"""Bodies of chats, prompts, responses, Anthropic's messages, LMI's and Ollama's requests have keys without a tokenizer.

Rules
1. Prompt fields are taken as the JSON that the client wrote, which clients write alike in every turn; four bytes count
   as a token.
2. A picture counts as `PICTURE_BYTES` of its base64, about as many tokens as models make of one.
3. Work is bounded whatever the body: nothing is made of its values, its first `MAX_TEXT_BYTES` of text have keys, and
   of a piece longer than `UNIT_BYTES` the last `MAX_READ_BYTES` are read. Above `MAX_BODY_BYTES` there are no keys.
4. A body that cannot be read has no keys either: any replica may refuse it.
5. The history of a response's chain and of a conversation is the server's. Their ids begin with the digits of the
   chain's first one, which make the session.
"""

import hashlib
import re
from hashlib import blake2b
from itertools import islice

import msgspec

from ouzel.routing.keys import RequestKeys, chained, pieces

UNIT_BYTES = 1024
BYTES_PER_TOKEN = 4
MAX_READ_BYTES = 512
MAX_TEXT_BYTES = 2**20
PICTURE_BYTES = 4096
MAX_BODY_BYTES = 8 * 2**20
_MAX_FIRST_TURN_BYTES = 32 * 2**10  # in which the first message of a user is looked for,
_MAX_FIRST_TURN_SIGNS = 2000  # and strings and brackets

_ROOT_DIGITS = 8
_CHAINED_ID = re.compile(rf"(?:resp|conv)_([0-9a-f]{{{_ROOT_DIGITS}}})[0-9a-f]{{40}}")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARK = rb'"cache_control"\s*:\s*\{[^{}]*\}'
_CACHE_MARK = re.compile(
    rb",\s{0,8}" + _MARK + rb"|" + _MARK + rb",?\s{0,8}"
)  # clients move it to what is newest
_SIGN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)  # a string or a bracket
_ENCODED = re.compile(
    rb"[A-Za-z0-9+/=_-]{64}"
)  # no text has that at every place where it is looked for
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
    messages: msgspec.Raw = _NOTHING
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
_role = msgspec.json.Decoder(_Role)
_conversation = msgspec.json.Decoder(str | _Named | None)


def make_body_keys(body: bytes, *, salt: str = "") -> RequestKeys | None:
    """Returns the keys of a request, or None; bodies with different salts, as of API keys, have none in common."""
    if len(body) > MAX_BODY_BYTES:
        return None
    try:
        return _keys(_body.decode(body.removeprefix(_BYTE_ORDER_MARK)), salt)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def find_chain_root(chained_id: str) -> str:
    """Returns the digits that all ids of a chain of responses, or of a conversation, have in common.

    An id that was made elsewhere has none; what stands for them is the beginning of its SHA-256, as `responses` has it.
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
    """Returns a JSON text or list without its end, as a longer one begins; nothing of other values."""
    return bytes(field[:-1]).rstrip() if bytes(field[:1]) in (b'"', b"[") else b""


def _conversation_id(body: _Body) -> str | None:
    named = _conversation.decode(body.conversation) if body.conversation else None
    return named.id if isinstance(named, _Named) else named


def _without_pictures(text: bytes) -> bytes:
    """Shortens the long strings that are base64. It looks at few places, which depend on what is before them only."""
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
    """Returns a list of messages up to the first of a user; of what has none, as a bare prompt, the beginning."""
    depth = begin = 0
    for sign in islice(_SIGN.finditer(text, 0, _MAX_FIRST_TURN_BYTES), _MAX_FIRST_TURN_SIGNS):
        match sign[0]:
            case b"{" | b"[":
                depth += 1
                begin = sign.start() if depth == 2 else begin
            case b"}" | b"]":
                depth -= 1
                if depth == 1 and _role_of(text[begin : sign.end()]) == "user":
                    return text[: sign.end()]
    return text[:UNIT_BYTES]


def _role_of(message: bytes) -> str | None:
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
    for begin, end in pieces(len(text), UNIT_BYTES):
        parent = chained(
            parent,
            text[begin:end] if end - begin == UNIT_BYTES else text[end - MAX_READ_BYTES : end],
        )
        blocks.append(parent)
    return tuple(blocks)
