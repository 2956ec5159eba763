"""A text that is drawn piece by piece becomes the same elements as the whole text."""

import random
from collections.abc import Iterator

import pytest

from tests.playground.markdown.drawing import Drawing

MARKS = (
    *(
        "*",
        "**",
        "***",
        "_",
        "__",
        "`",
        "``",
        "~~",
        "~",
        "[",
        "](",
        "](https://a.b/c)",
        ")",
        "!",
        "![",
        "<",
        ">",
        "$",
        "$$",
    ),
    *(
        "<https://x.y>",
        "> ",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "2) ",
        "    ",
        "  ",
        "\t",
        "# ",
        "## ",
        "---",
        "***\n",
        "===",
        "```",
    ),
    *(
        "```py\n",
        "~~~",
        "|",
        "| a | b |\n",
        "|---|:-:|\n",
        "\\",
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "&amp;",
        "&#x41;",
        "[x] ",
        "[ ] ",
    ),
    *(
        "http://e.x/_a_ ",
        "https://",
        "\r\n",
        "  \n",
        "\\\n",
        "\n\n",
        "/* ",
        "*/",
        '"""',
        "def f(): # c",
        "'",
        '"',
        "{",
        "5",
        "[^1]",
        "[^1]: ",
        "\\begin{align}",
        "\\end{align}\n",
    ),
)
WORDS = ("a", "word ", "中文字", "。", "é", "😀", "x", "\n", "\n")
PAGE = """# Title *em* `code`

Some **bold *nested* text**, ~~gone~~, `a ` b`, \\*escaped\\*, &amp; &bogus; <b>html</b>.
Second line with a hard break  \nhttps://example.com/a_b?c=d. [link](https://a.b/c "title") ![pic](https://a.b/p.png).
Maths $x_1 * y_2$ costs $5 and $6, \\(a*b*c\\) and \\[ \\sum_i \\].

$$
\\int_0^1 x*y*z dx
$$

- one
- two
  - nested **x**
  - [ ] todo

- [x] done

3. three

   para in three
> quote
> > deeper
lazy

| a | b | c |
|:--|:-:|--:|
| 1 | `2` | **3** |
| x \\| y | z |

```python
def f(x: int) -> str:
    \"\"\"Returns
    a text.\"\"\"
    return f"hi {x}"  # comment
```

    indented code


    more of it

A note[^1] and [^none].

[^1]: the note
    goes *on*
[^2]: other

\\begin{align}
a &= b
\\end{align}

***
Setext
------
[bad](javascript:alert(1)) *unclosed and snake_case_word 中文**字**文
"""
NUM_TEXTS = 60


def ways_to_cut(text: str, choose: random.Random) -> Iterator[list[int]]:
    """Yields ways to cut a text: between all UTF-16 units, and at a few random offsets."""
    length = len(text.encode("utf-16-le")) // 2
    yield list(range(1, length))
    for num_places in (1, 2, 5, 10):
        yield sorted(choose.randrange(length + 1) for _ in range(num_places))


def texts(choose: random.Random) -> Iterator[str]:
    for _ in range(NUM_TEXTS):
        length = choose.choice((5, 15, 40, 120))
        yield "".join(choose.choice(choose.choice((MARKS, WORDS))) for _ in range(length))


def test_a_page_is_the_same(drawing: Drawing) -> None:
    choose = random.Random(1)
    assert drawing.differences([(PAGE, list(ways_to_cut(PAGE, choose)))]) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_random_text_is_the_same(drawing: Drawing, seed: int) -> None:
    choose = random.Random(seed)
    assert (
        drawing.differences([(text, list(ways_to_cut(text, choose))) for text in texts(choose)])
        == []
    )


@pytest.mark.parametrize("mark", ["*", "`", "[", "$", "**", "_", "\\(", "![", "<", "~~", "]("])
def test_marks_that_are_far_apart_are_the_same(drawing: Drawing, mark: str) -> None:
    """A mark that stays open for a long time is settled as text, and is text in the end."""
    text = f"{mark}begin " + "word " * 500 + f"end{mark} " + "more " * 20
    assert drawing.differences([(text, [list(range(7, len(text), 7))])]) == []
