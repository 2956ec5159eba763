"""Lists the patterns that split a text before byte-pair encoding, by llama.cpp's names
(`tokenizer.ggml.pre`).

The patterns are from the tokenizer.json files of the named models; llama.cpp (llama-vocab.cpp) has
equivalent ones for its engine. From there is also which names share a pattern, and which models
look up whole words before merging.
"""

from dataclasses import dataclass

from ouzel.checkpoint.model_files import JsonObject
from ouzel.gguf.post_processor import PairForm

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORD = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _cl100k(digits: str, *, letters: str = r"\p{L}") -> str:
    others = rf" ?[^\s{letters}\p{{N}}]+[\r\n]*"
    return rf"{_CONTRACTIONS}|{_WORD}[{letters}]+|{digits}|{others}|{_SPACES}"


def _o200k(digits: str, contractions: str) -> str:
    words = rf"{_WORD}{_UPPER}*{_LOWER}+{contractions}|{_WORD}{_UPPER}+{_LOWER}*{contractions}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    patterns: tuple[str, ...]  # each splits the pieces of the patterns before it
    ignores_merges: bool = False  # a word that is a token is not split further
    adds_bos: bool = False  # the default if the file does not say
    pair_form: PairForm = "repeated"  # how a pair of texts is written
    normalises: bool = False  # normalises to composed characters (NFC)


_LLAMA3 = PreTokenizer((_cl100k(r"\p{N}{1,3}"),), ignores_merges=True, adds_bos=True)
_QWEN2 = PreTokenizer((_cl100k(r"\p{N}"),), normalises=True)
_QWEN35 = PreTokenizer((_cl100k(r"\p{N}", letters=r"\p{L}\p{M}"),), normalises=True)
_GPT4O = PreTokenizer((_o200k(r"\p{N}{1,3}", _CONTRACTIONS + "?"),))
_JAIS2 = PreTokenizer(
    (
        _cl100k(r"\p{N}{1,3}").removesuffix(r"|\s+(?!\S)|\s+")
        + "".join(rf"|\s{{{count}}}(?!\S)" for count in (512, 256, 128, 64, 32, 16, 8, 4, "1,2"))
        + r"|\s{1}",
    )
)
_BLOOM = PreTokenizer((r" ?[^(\s|.,!?…。，、।۔،)]+",))
_DIGITS_GPT2 = PreTokenizer((r"\p{N}", _GPT2))
_DEEPSEEK3 = PreTokenizer(
    (
        r"\p{N}{1,3}",
        "[一-龥\u3040-ゟ゠-ヿ]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}",
    )
)

PRE_TOKENIZERS = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    **dict.fromkeys(
        (
            *("gpt-2", "olmo", "phi-2", "exaone4", "mpt", "mellum", "a.x-4.0", "gigachat"),
            *("trillion", "granite-docling", "jina-v2-es", "jina-v2-de"),
        ),
        PreTokenizer((_GPT2,)),
    ),
    **dict.fromkeys(("bloom", "poro-chat", "gpt3-finnish"), _BLOOM),
    "modern-bert": PreTokenizer((_GPT2,), normalises=True, pair_form="bert"),
    **dict.fromkeys(
        ("jina-v1-en", "jina-v2-code", "roberta-bpe"),
        PreTokenizer((_GPT2,), pair_form="roberta"),
    ),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    **dict.fromkeys(
        (
            *("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone"),
            *("minerva-7b", "mellum2"),
        ),
        _DIGITS_GPT2,
    ),
    **dict.fromkeys(
        (
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "lfm2",
            "midm-2.0",
            "jina-v5-nano",
        ),
        _LLAMA3,
    ),
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe"), PreTokenizer((_cl100k(r"\p{N}{1,3}"),))),
    **dict.fromkeys(("glm4", "glm5"), PreTokenizer((_cl100k(r"\p{N}{1,3}"),), ignores_merges=True)),
    "jais-2": _JAIS2,
    "minicpm5": PreTokenizer((r"\p{N}{1,3}", _cl100k(r"\p{N}+")), ignores_merges=True),
    "deepseek-coder": PreTokenizer(
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}")
    ),
    **dict.fromkeys(("solar-open", "grok-2"), PreTokenizer(_QWEN2.patterns)),
    **dict.fromkeys(("qwen2", "stablelm2", "hunyuan"), _QWEN2),
    "deepseek-r1-qwen": PreTokenizer(_QWEN2.patterns),
    "qwen35": _QWEN35,
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "minimax-m2"), _GPT4O),
    "tekken": PreTokenizer((_o200k(r"\p{N}", ""),), ignores_merges=True, adds_bos=True),
    "seed-coder": PreTokenizer(
        (
            rf"{_CONTRACTIONS}|{_WORD}\p{{L}}+|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+"
            rf"|\s*[\r\n]+|\s+(?!\S)|\s+",
        )
    ),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"), _DEEPSEEK3),
}


def make_pre_tokenizer(pre_tokenizer: PreTokenizer) -> JsonObject:
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in pre_tokenizer.patterns
    ]
    bytes_to_characters = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    return {"type": "Sequence", "pretokenizers": [*splits, bytes_to_characters]}
