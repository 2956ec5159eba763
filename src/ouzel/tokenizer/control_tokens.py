"""Finds the control tokens of a vocabulary: tokens that structure a prompt, such as marks of turns
and calls.

They are the special ones of the added tokens in `tokenizer.json`, and the added tokens that look
like a mark (`<tool_call>`, `[INST]`). Runs of white space and HTML tags, which some vocabularies
add for compression, are ordinary text. So are PaliGemma's numbers of places and shapes in pictures
(`<loc0512>`, `<seg007>`), which instructions contain.
"""

import re
from collections.abc import Mapping

import tokenizers

_SPACES = " \t\r\n\u2581"  # U+2581 is the space of SentencePiece
_MARK = re.compile(r"<.*>|\[.*\]", re.DOTALL)
_HTML_TAG = re.compile(
    r"</?(?:a|b|blockquote|br|caption|code|div|em|h[1-6]|hr|i|img|li|ol|p|pre|s|span|strong|sub|sup"
    r"|table|tbody|td|tfoot|th|thead|tr|u|ul)/?>"
)
_NUMBER_IN_PICTURE = re.compile(r"<loc\d{4}>|<seg\d{3}>")


def find_control_tokens(added_tokens: Mapping[int, tokenizers.AddedToken]) -> dict[str, int]:
    """Returns the ids of the control tokens by their spelling."""
    return {
        token.content: token_id
        for token_id, token in added_tokens.items()
        if _is_control_token(token)
    }


def _is_control_token(token: tokenizers.AddedToken) -> bool:
    text = token.content.strip(_SPACES)
    if len(text) < 2:  # some models have "!" as padding token
        return False
    is_mark = _MARK.fullmatch(text) is not None
    is_text = any(form.fullmatch(text) is not None for form in (_HTML_TAG, _NUMBER_IN_PICTURE))
    return token.special or (is_mark and not is_text)
