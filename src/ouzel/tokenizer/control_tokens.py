"""Control tokens are the tokens by which a prompt says more than its text: who speaks, where a turn or a call ends.

They are the added tokens of `tokenizer.json` that are special, and those that are written like a mark (`<tool_call>`,
`[INST]`). Runs of white space and the tags of HTML, which some vocabularies add to be shorter, are ordinary text.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

import tokenizers

_SPACES = " \t\r\n\u2581"  # U+2581 is SentencePiece's space
_MARK = re.compile(r"<.*>|\[.*\]", re.DOTALL)
_HTML_TAG = re.compile(
    r"</?(?:a|b|blockquote|br|caption|code|div|em|h[1-6]|hr|i|img|li|ol|p|pre|s|span|strong|sub|sup"
    r"|table|tbody|td|tfoot|th|thead|tr|u|ul)/?>"
)


def control_tokens_of(added_tokens: Mapping[int, tokenizers.AddedToken]) -> dict[str, int]:
    """Returns the ids of the control tokens by their spelling."""
    return {token.content: token_id for token_id, token in added_tokens.items() if _is_control_token(token)}


def _is_control_token(token: tokenizers.AddedToken) -> bool:
    text = token.content.strip(_SPACES)
    if len(text) < 2:  # some models pad with "!"
        return False
    return token.special or (_MARK.fullmatch(text) is not None and _HTML_TAG.fullmatch(text) is None)


class Spellings:
    """Finds any of some texts in a text, the longest first. Thousands of them cost no more than a few."""

    def __init__(self, texts: Collection[str]) -> None:
        assert all(texts)
        self._pattern = re.compile(_pattern_of(texts)) if texts else None
        self._max_len = max(map(len, texts), default=0)
        # Parts that are mere words might be anybody's.
        self._beginnings = {text[:end] for text in texts for end in range(1, len(text)) if not text[:end].isalnum()}
        self._ends = {text[start:] for text in texts for start in range(1, len(text)) if not text[start:].isalnum()}

    def spans(self, text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        if self._pattern is not None:
            for found in self._pattern.finditer(text, start, len(text) if end is None else end):
                yield found.span()

    def are_in(self, text: str) -> bool:
        return self._pattern is not None and self._pattern.search(text) is not None

    def len_of_begun(self, text: str) -> int:
        """Returns how many characters at the text's end are the beginning of one of the texts, which ends later."""
        return next((n for n in range(min(self._max_len, len(text)), 0, -1) if text[-n:] in self._beginnings), 0)

    def len_of_ended(self, text: str) -> int:
        """Returns how many characters at the text's beginning are the end of one of the texts, which began earlier."""
        return next((n for n in range(min(self._max_len, len(text)), 0, -1) if text[:n] in self._ends), 0)


_Node: TypeAlias = "dict[str, _Node]"


def _pattern_of(texts: Collection[str]) -> str:
    """Returns an expression that follows the texts character by character, however many there are."""
    root: _Node = {}
    for text in texts:
        node = root
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}  # a text ends here
    return _expression(root)


def _expression(node: _Node) -> str:
    chain = ""
    while len(node) == 1 and "" not in node:
        [(character, node)] = node.items()
        chain += re.escape(character)
    branches = [re.escape(character) + _expression(after) for character, after in node.items() if character]
    return chain + (f"(?:{'|'.join(branches)})" if branches else "") + ("?" if branches and "" in node else "")
