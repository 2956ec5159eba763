"""Makes tokenizer.json from the tokens of texts, whose ids are their ranks."""

from collections.abc import Sequence

from ouzel.checkpoint.model_files import JsonObject
from ouzel.whisper_files.byte_pairs import encode_bytes, make_byte_alphabet, rebuild_merges
from ouzel.whisper_files.special_tokens import NUM_TIMESTAMPS, SpecialTokens

# Marks that subtitles have for sounds and speakers, as OpenAI's code lists them.
_MARKS = [
    *'"#()*+/:;<=>@[\\]^_`{|}~「」『』',
    *("<<", ">>", "<<<", ">>>", "--", "---", "-(", "-[", "('", '("'),
    *("((", "))", "(((", ")))", "[[", "]]", "{{", "}}", "♪♪", "♪♪♪"),
]
_NOTES = "♩♪♫♬♭♮♯"  # a note of several tokens: the first one is suppressed
_NOT_FIRST = (" -", " '")  # words may contain them
_UNSPOKEN = ("translate", "transcribe", "startoflm", "startofprev", "nospeech")


def make_tokenizer(tokens: Sequence[bytes], special: SpecialTokens, source: object) -> JsonObject:
    """Returns the content of tokenizer.json; empty tokens are left out.

    Raises ModelLoadError, which names the source.
    """
    alphabet = make_byte_alphabet()

    def spell(token: bytes) -> str:
        return "".join(alphabet[byte] for byte in token)

    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    merges = rebuild_merges(tokens, source)
    names = special.list_names()
    timestamps = {
        f"<|{step / 50:.2f}|>": special.first_timestamp + step for step in range(NUM_TIMESTAMPS)
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            *(_describe_token(text, token_id, is_special=True) for text, token_id in names.items()),
            *(
                _describe_token(text, token_id, is_special=False)
                for text, token_id in timestamps.items()
            ),
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "post_processor": _make_post_processor(names),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {spell(token): each for each, token in enumerate(tokens) if token},
            "merges": [[spell(left), spell(right)] for left, right in merges],
        },
    }


def _describe_token(text: str, token_id: int, *, is_special: bool) -> JsonObject:
    return {
        "id": token_id,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": is_special,
    }


def _make_post_processor(names: dict[str, int]) -> JsonObject:
    start, end = ("<|startoftranscript|>", "<|notimestamps|>"), "<|endoftext|>"
    around = [{"SpecialToken": {"id": name, "type_id": 0}} for name in (*start, end)]
    text: JsonObject = {"Sequence": {"id": "A", "type_id": 0}}
    second: JsonObject = {"Sequence": {"id": "B", "type_id": 1}}
    return {
        "type": "TemplateProcessing",
        "single": [*around[:2], text, around[2]],
        "pair": [*around[:2], text, second, around[2]],
        "special_tokens": {
            name: {"id": name, "ids": [names[name]], "tokens": [name]} for name in (*start, end)
        },
    }


def find_unspoken_ids(tokens: Sequence[bytes], special: SpecialTokens) -> list[int]:
    """Finds the tokens that no transcript has: marks of subtitles, notes, and special tokens."""
    ranks = {token: token_id for token_id, token in enumerate(tokens)}

    def encode(text: str) -> list[int]:
        return [ranks[part] for part in encode_bytes(text.encode(), ranks, len(tokens))]

    found = {encode(text)[0] for text in _NOT_FIRST}
    for mark in [*_MARKS, *_NOTES]:
        for text in (mark, f" {mark}"):
            ids = encode(text)
            if len(ids) == 1 or mark in _NOTES:
                found.add(ids[0])
    found |= {special.start, *(special.others[name] for name in _UNSPOKEN)}
    return sorted(found)
