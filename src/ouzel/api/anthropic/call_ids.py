"""Translates the ids of tool calls into Anthropic's form and back.

The parser or the chat template makes our ids.

    call_Ab12…    <-> toolu_Ab12…
    functions.f:0 <-> toolu_own_ + base64url(…)

Anthropic's ids have only letters, digits, `_` and `-`, and a session may continue there.
"""

import re
from base64 import b64decode, urlsafe_b64encode
from binascii import Error

_PREFIX = "toolu_"
_OWN_PREFIX = "toolu_own_"
_COMMON = re.compile(r"call_([A-Za-z0-9]{24})")
_COMMON_SHOWN = re.compile(r"toolu_([A-Za-z0-9]{24})")


def show_call_id(call_id: str) -> str:
    common = _COMMON.fullmatch(call_id)
    if common:
        return _PREFIX + common[1]
    return _OWN_PREFIX + urlsafe_b64encode(call_id.encode()).decode().rstrip("=")


def restore_call_id(shown_id: str) -> str:
    """Returns our id for an id in Anthropic's form. Ids of other servers stay unchanged."""
    common = _COMMON_SHOWN.fullmatch(shown_id)
    if common:
        return "call_" + common[1]
    encoded = shown_id.removeprefix(_OWN_PREFIX)
    if encoded == shown_id:
        return shown_id
    try:
        own = b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).decode()
    except (Error, ValueError):
        return shown_id
    return own or shown_id
