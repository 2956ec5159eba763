"""Chunks have the whole text, end at headings, and are never longer than asked for."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from ouzel.hosted_tools.file_search.chunking import (
    Atom,
    Outline,
    cut_atoms,
    divide_by_sections,
    divide_static,
    make_chunk,
    split_sections,
)
from ouzel.hosted_tools.file_search.records import StaticChunking

PAGE = """# Otters

Otters hold hands. They sleep on their backs!

## Food

They eat crabs, and mussels.

```python
# a comment, no heading
crabs = 1
```

# Seals

Seals eat herring。鲱鱼很好吃。
"""


async def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def cut(text: str, max_tokens: int = 5, *, section_chars: int = 10_000) -> list[Atom]:
    async def cut_sections() -> list[Atom]:
        atoms, outline = [], Outline()
        for section in split_sections(text, section_chars):
            atoms += await cut_atoms(text, section, outline, count_words, max_tokens)
        return atoms

    return asyncio.run(cut_sections())


@pytest.mark.parametrize("text", [PAGE, "", "x", "\n\n\n", "word " * 500, "a" * 3000])
@pytest.mark.parametrize("max_tokens", [1, 5, 1000])
@pytest.mark.parametrize("section_chars", [1, 30, 10_000])
def test_atoms_are_short_and_have_the_whole_text(
    text: str, max_tokens: int, section_chars: int
) -> None:
    atoms = cut(text, max_tokens, section_chars=section_chars)
    assert "".join(text[atom.start : atom.end] for atom in atoms) == text
    assert all(atom.num_tokens <= max_tokens for atom in atoms)


@pytest.mark.parametrize("size", [5, 8, 100])
def test_static_chunks_overlap_and_have_the_whole_text(size: int) -> None:
    atoms = cut(PAGE, size // 4 or 1)
    groups = divide_static(atoms, StaticChunking(size, size // 2))
    assert {atom for group in groups for atom in group} == set(atoms)
    for group in groups:
        assert sum(atom.num_tokens for atom in group) <= size
    for before, after in itertools.pairwise(groups):
        assert after[0].start <= before[-1].end  # no gap
        assert after[0].start > before[0].start
    if size == 8:
        assert any(after[0] in before for before, after in itertools.pairwise(groups))


@pytest.mark.parametrize("max_tokens", [6, 12, 20])
def test_sections_are_chunks(max_tokens: int) -> None:
    atoms = cut(PAGE, 3)
    groups = divide_by_sections(atoms, max_tokens)
    assert [atom for group in groups for atom in group] == atoms
    assert all(sum(atom.num_tokens for atom in group) <= max_tokens for group in groups)
    begins = [PAGE[group[0].start :].split("\n", maxsplit=1)[0] for group in groups]
    assert "# Seals" in begins


def test_a_chunk_knows_the_headings_above_it() -> None:
    groups = divide_by_sections(cut(PAGE, 3), 6)
    headings = [make_chunk(group, 100).heading for group in groups]
    assert headings[0] == "Otters"
    assert "Otters > Food" in headings
    assert headings[-1] == "Seals"
    assert not any("comment" in heading for heading in headings)


def test_headings_reach_the_sections_behind_them() -> None:
    whole, divided = cut(PAGE), cut(PAGE, section_chars=60)
    headings = {atom.start: atom.heading for atom in divided}
    assert all(headings[atom.start] == atom.heading for atom in whole)
    assert "Otters > Food" in headings.values()


def test_sections_end_with_a_line_if_they_can() -> None:
    assert list(split_sections("aa\nbb\ncccccccc", 6)) == [(0, 6), (6, 12), (12, 14)]
    assert list(split_sections("a" * 10, 6)) == [(0, 6), (6, 10)]
    assert list(split_sections("", 6)) == []


def test_a_line_of_many_spaces_is_read_quickly() -> None:
    """A heading was once looked for in a time that grew with the square of the spaces."""
    text = "#" + " " * 1_000_000 + "\n# Otters \n"
    assert cut(text)[-1].heading == "Otters"


async def test_a_long_line_is_not_counted_whole() -> None:
    longest = 0

    async def count(texts: Sequence[str]) -> list[int]:
        nonlocal longest
        longest = max(longest, *map(len, texts))
        return [len(text) for text in texts]

    text = "a" * 100_000
    atoms = await cut_atoms(text, (0, len(text)), Outline(), count, 10)
    assert longest <= 320
    assert max(atom.num_tokens for atom in atoms) <= 10


def test_windows_of_a_chunk_join_to_the_chunk() -> None:
    [group] = divide_by_sections(cut(PAGE, 3), 1000)[:1]
    chunk = make_chunk(group, 6)
    assert len(chunk.windows) > 1
    assert (chunk.windows[0][0], chunk.windows[-1][1]) == (chunk.start, chunk.end)
    for before, after in zip(chunk.windows, chunk.windows[1:], strict=False):
        assert before[1] == after[0]
