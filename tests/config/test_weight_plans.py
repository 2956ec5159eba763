"""`--weights` sets a width for the model, and other widths for its parts."""

import pytest

from ouzel.config.weights import read_weights


@pytest.mark.parametrize(
    ("text", "parts", "tied"),
    [
        ("auto", ("auto", "auto", "auto", "auto"), "auto"),
        ("int8", ("int8", "int8", "int8", "int8"), "int8"),
        ("int4", ("int4", "int4", "int8", "int8"), "int8"),
        ("int4,head=int4", ("int4", "int4", "int8", "int4"), "int4"),
        ("int4,embedding=bf16", ("int4", "int4", "bf16", "int8"), "bf16"),
        ("int8,experts=int4", ("int8", "int4", "int8", "int8"), "int8"),
        ("int8,layers=int4", ("int4", "int8", "int8", "int8"), "int8"),
        ("int4,head=int4,embedding=int4", ("int4", "int4", "int4", "int4"), "int4"),
        ("bf16,embedding=int8,head=int4", ("bf16", "bf16", "int8", "int4"), None),
    ],
)
def test_each_part_has_its_width(text: str, parts: tuple[str, ...], tied: str | None) -> None:
    plan = read_weights(text)
    assert ((plan.layers, plan.experts, plan.embedding, plan.head), plan.tied) == (parts, tied)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("int4,embedding=int8,head=int8", "int4"),
        ("auto", "int8"),
        ("auto,head=int4", "int8,head=int4"),
        ("int8,layers=int4", "int4,experts=int8"),
        ("f32,embedding=int8,head=int4", "f32,embedding=int8,head=int4"),
    ],
)
def test_a_plan_is_shown_as_it_could_be_asked_for(text: str, shown: str) -> None:
    plan = read_weights(text).with_auto("int8")
    assert str(plan) == shown
    assert str(read_weights(shown)) == shown


def test_recompress_is_part_of_the_plan() -> None:
    assert read_weights("auto,head=int4", recompress=True).with_auto("int8").recompress
    assert not read_weights("int4").recompress


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int2", "a width must be one of auto, int8, int4, bf16, f32"),
        ("", "a width must be one of auto, int8, int4, bf16, f32"),
        ("int4,head=4", "a width must be one of auto, int8, int4, bf16, f32"),
        ("head=int4", "a width must be one of auto, int8, int4, bf16, f32"),
        (
            "int4,router=int8",
            "a part must be named as one of layers, experts, embedding, head, as in int4,head=int4",
        ),
        (
            "int4,int8",
            "a part must be named as one of layers, experts, embedding, head, as in int4,head=int4",
        ),
        ("int4,head=int4,head=int8", "a part must be named once, as in int4,head=int4"),
    ],
)
def test_what_no_plan_can_be_made_of_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_weights(text)
