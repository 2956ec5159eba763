"""Writes model directories of vision families: a golden checkpoint with a server's other files.

The image processor's settings, the special tokens and the chat template follow published
checkpoints. The sizes of images are smaller, because the golden encoders are small.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

GOLDEN = Path(__file__).parent / "golden_vision"
BYTES_OF_GPT_2 = {" ": "Ġ", "\n": "Ċ"}
BYTES_OF_SENTENCEPIECE = {" ": "▁", "\n": "<0x0A>"}


@dataclass(frozen=True, kw_only=True)
class SeeingFamily:
    checkpoint: str  # a directory of golden_vision
    template: str  # empty: the checkpoint has none
    marks: Mapping[str, int]  # special tokens with given ids
    more_marks: tuple[str, ...]  # special tokens with any id
    preprocessor: Mapping[str, object]
    videos: Mapping[str, object] = field(default_factory=dict)  # video_preprocessor_config.json
    processor: Mapping[str, object] = field(default_factory=dict)
    tokenizer_config: Mapping[str, object] = field(default_factory=dict)
    kind: Literal["byte level", "sentencepiece"] = "byte level"
    line_breaks: tuple[str, ...] = ()  # tokens of line breaks, which are not special
    # keys that replace keys of the golden checkpoint's text_config
    text_config: Mapping[str, object] = field(default_factory=dict)

    def write(self, directory: Path) -> Path:
        source = GOLDEN / self.checkpoint
        (directory / "model.safetensors").symlink_to(source / "model.safetensors")
        config = json.loads((source / "config.json").read_text())
        # older families have the keys of the language model beside vision_config
        text = config.get("text_config", config)
        text |= self.text_config
        contents = {
            "config.json": config,
            "preprocessor_config.json": self.preprocessor,
            "video_preprocessor_config.json": self.videos,
            "processor_config.json": self.processor,
            "tokenizer_config.json": self.tokenizer_config,
        }
        for name, content in contents.items():
            if content:
                (directory / name).write_text(json.dumps(content))
        if self.template:
            (directory / "chat_template.jinja").write_text(self.template)
        self._tokenizer(text["vocab_size"]).save(str(directory / "tokenizer.json"))
        return directory

    def _tokenizer(self, vocab_size: int) -> tokenizers.Tokenizer:
        """Builds a tokenizer whose characters have their ASCII codes as ids."""
        spelled = BYTES_OF_GPT_2 if self.kind == "byte level" else BYTES_OF_SENTENCEPIECE
        characters = {
            spelled.get(chr(code), chr(code)): code for code in (ord("\n"), *range(32, 127))
        }
        taken = {*characters.values(), *self.marks.values()}
        free = (id_ for id_ in range(vocab_size) if id_ not in taken)
        others = (*self.more_marks, *self.line_breaks)
        marks = {**self.marks, **dict(zip(others, free, strict=False))}
        assert len(marks) == len(self.marks) + len(others), "all of them fit the vocabulary"
        is_sentencepiece = self.kind == "sentencepiece"
        made = tokenizers.Tokenizer(
            models.BPE({**characters, **marks}, [], byte_fallback=is_sentencepiece)
        )
        if is_sentencepiece:
            made.normalizer = normalizers.Replace(" ", "▁")
            made.decoder = decoders.Sequence(
                [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
            )
        else:
            made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            made.decoder = decoders.ByteLevel()
        for mark in marks:
            made.add_tokens(
                [AddedToken(mark, special=mark not in self.line_breaks, normalized=False)]
            )
        return made
