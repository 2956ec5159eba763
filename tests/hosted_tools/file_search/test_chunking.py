"""Chunks have the whole text, end at headings, and are never longer than asked for."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from ouzel.hosted_tools.file_search.chunking import (
    Atom,
    cut_atoms,
    divide_by_sections,
    divide_static,
    make_chunk,
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


def cut(text: str, max_tokens: int = 5) -> list[Atom]:
    return asyncio.run(cut_atoms(text, count_words, max_tokens))


@pytest.mark.parametrize("text", [PAGE, "", "x", "\n\n\n", "word " * 500, "a" * 3000])
@pytest.mark.parametrize("max_tokens", [1, 5, 1000])
def test_atoms_are_short_and_have_the_whole_text(text: str, max_tokens: int) -> None:
    atoms = cut(text, max_tokens)
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


def test_windows_of_a_chunk_join_to_the_chunk() -> None:
    [group] = divide_by_sections(cut(PAGE, 3), 1000)[:1]
    chunk = make_chunk(group, 6)
    assert len(chunk.windows) > 1
    assert (chunk.windows[0][0], chunk.windows[-1][1]) == (chunk.start, chunk.end)
    for before, after in zip(chunk.windows, chunk.windows[1:], strict=False):
        assert before[1] == after[0]
