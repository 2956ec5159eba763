"""Two pictures: which has more, what differs, which one shows it, what is in each."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from training.demo_vision import phrasings_pairs as ask
from training.demo_vision.exchanges import Exchange
from training.demo_vision.naming import (
    article,
    counted,
    description_of,
    matches,
    name_of,
    noun,
    plural,
    with_article,
)
from training.demo_vision.sampling import Sampler
from training.demo_vision.scene import Scene, SceneMaker, Thing, colors_on
from training.demo_vision.turns import question
from training.demo_vision.values import PLACE_PHRASES

SKILL = "comparison"
ORDINALS = ("first", "second")


@dataclass(frozen=True, slots=True)
class Pair:
    first: Scene
    second: Scene
    difference: str | None  # None where too much differs to be told

    @property
    def scenes(self) -> tuple[Scene, Scene]:
        return self.first, self.second


# Pairs


def any_pair(sampler: Sampler, maker: SceneMaker) -> Pair:
    kind = sampler.rng.random()
    if kind < 0.45:
        return changed(sampler, maker)
    if kind < 0.75:
        return Pair(maker.crowd(), maker.crowd(), None)
    return Pair(maker.placed(), maker.placed(), None)


def changed(sampler: Sampler, maker: SceneMaker) -> Pair:
    """Changes one thing of a picture, or nothing."""
    scene = maker.only_shapes(sampler.rng.randint(1, 3)) if sampler.chance(0.8) else maker.placed()
    change = sampler.any(
        (_other_color, _other_color, _other_shape, _missing, _missing, _other_background, _nothing)
    )
    return change(sampler, scene) or _nothing(sampler, scene)


def _nothing(sampler: Sampler, scene: Scene) -> Pair:
    return Pair(scene, scene, "There is no difference.")


def _other_background(sampler: Sampler, scene: Scene) -> Pair | None:
    fitting = [
        color
        for color in colors_on(scene.background)
        if all(t.color in colors_on(color) for t in scene.things)
    ]
    if not fitting:
        return None
    second = replace(scene, background=sampler.any(fitting))
    text = f"The background is {scene.background} in the first picture and {second.background} in the second."
    return Pair(scene, second, text)


def _other_color(sampler: Sampler, scene: Scene) -> Pair | None:
    thing = sampler.any(scene.things)
    if (name := name_of(sampler, scene, thing, "color", "size", "place")) is None:
        return None
    other = replace(
        thing,
        color=sampler.any([each for each in colors_on(scene.background) if each != thing.color]),
    )
    text = f"The {name} is {thing.color} in the first picture and {other.color} in the second."
    return Pair(scene, _with(scene, thing, other), text)


def _other_shape(sampler: Sampler, scene: Scene) -> Pair | None:
    if not scene.shapes:
        return None
    thing = sampler.any(scene.shapes)
    _, shape = sampler.colored_shape([thing.color])
    if shape == thing.name:
        return None
    half = max(thing.half_width, thing.half_height)
    sizes = (half, half * 0.5) if shape == "rectangle" else (half * 0.9, half * 0.9)
    other = replace(thing, name=shape, half_width=sizes[0], half_height=sizes[1], turn=0.0)
    place = PLACE_PHRASES[thing.place]
    text = f"{place[:1].upper()}{place[1:]} there is {article(thing.name)} in the first picture"
    return Pair(scene, _with(scene, thing, other), f"{text} and {article(shape)} in the second.")


def _missing(sampler: Sampler, scene: Scene) -> Pair | None:
    if len(scene.things) < 2:
        return None
    thing = sampler.any(scene.things)
    fewer = _with(scene, thing, None)
    if sampler.chance(0.5):
        return Pair(scene, fewer, f"Only the first picture has {with_article(thing)}.")
    return Pair(fewer, scene, f"Only the second picture has {with_article(thing)}.")


def _with(scene: Scene, thing: Thing, other: Thing | None) -> Scene:
    things = [other if each is thing else each for each in scene.things]
    return replace(scene, things=tuple(each for each in things if each is not None))


# Questions


def pair_question(sampler: Sampler, pair: Pair) -> Exchange:
    makers: dict[Callable[[Sampler, Pair], Exchange | None], float] = {
        difference: 8,
        more: 4,
        which: 3,
        both: 2,
        of_one: 4,
    }
    while (exchange := sampler.weighted(makers)(sampler, pair)) is None:
        pass
    return exchange


def difference(sampler: Sampler, pair: Pair) -> Exchange | None:
    return (
        Exchange(SKILL, sampler.phrase(ask.DIFFERENCE), pair.difference)
        if pair.difference
        else None
    )


def more(sampler: Sampler, pair: Pair) -> Exchange | None:
    """Counts before it decides: so the answer is found in the order in which it is written."""
    if pair.difference or (found := counted(sampler, sampler.any(pair.scenes))) is None:
        return None
    first, second = (
        sum(matches(thing, found[0]) for thing in scene.shapes) for scene in pair.scenes
    )
    counts = f"The first picture has {first or 'no'}, the second {second or 'no'}"
    end = (
        ": as many."
        if first == second
        else f": the {'first' if first > second else 'second'} has more."
    )
    return Exchange(SKILL, sampler.phrase(ask.MORE, things=plural(found[0])), counts + end)


def which(sampler: Sampler, pair: Pair) -> Exchange | None:
    shapes = [*pair.first.shapes, *pair.second.shapes]
    if not shapes:
        return None
    thing = sampler.any(shapes)
    kind = sampler.any((thing.name, noun(thing), noun(thing)))
    first, second = (any(matches(each, kind) for each in scene.shapes) for scene in pair.scenes)
    answer = (
        "Both pictures" if first and second else f"The {'first' if first else 'second'} picture"
    )
    return Exchange(SKILL, sampler.phrase(ask.WHICH, a_kind=article(kind)), f"{answer}.")


def both(sampler: Sampler, pair: Pair) -> Exchange | None:
    first, second = (description_of(scene) for scene in pair.scenes)
    if first is None or second is None:
        return None
    return Exchange(
        SKILL, sampler.phrase(ask.BOTH), f"First picture: {first} Second picture: {second}"
    )


def of_one(sampler: Sampler, pair: Pair) -> Exchange:
    """Asks about one of the pictures what could be asked of it alone."""
    which = sampler.rng.randint(0, 1)
    asked = question(sampler, pair.scenes[which])
    user = sampler.phrase(ask.OF_ONE, which=ORDINALS[which], question=asked.user)
    return Exchange(SKILL, user, asked.answer, asked.check)
