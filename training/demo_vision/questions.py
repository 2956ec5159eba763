"""Questions about one picture, with the answers that its scene gives."""

from collections.abc import Callable

from training.demo_vision import phrasings as ask
from training.demo_vision.exchanges import Exchange
from training.demo_vision.naming import (
    absent_shape,
    article,
    count_of,
    counted,
    description_of,
    named,
    noun,
    plural,
    two_named,
    with_article,
)
from training.demo_vision.sampling import Sampler
from training.demo_vision.scene import Scene, colors_on
from training.demo_vision.values import PLACE_PHRASES, PLACES

APART = 0.13  # in units: things nearer than this are beside each other, not above or below


Question = Callable[
    [Sampler, Scene], Exchange | None
]  # None where the scene gives no such question


def color(sampler: Sampler, scene: Scene) -> Exchange | None:
    if not scene.has_places and sampler.chance(0.6):
        return _colors_of(sampler, scene)
    if sampler.chance(0.08):
        shape = absent_shape(sampler, scene)
        return Exchange("color", sampler.phrase(ask.COLOR, thing=shape), f"There is no {shape}.")
    if (found := named(sampler, scene, "color", shapes_only=False)) is None:
        return None
    thing, name = found
    return Exchange(
        "color", sampler.phrase(ask.COLOR, thing=name), f"The {name} is {thing.color}.", about=thing
    )


def _colors_of(sampler: Sampler, scene: Scene) -> Exchange | None:
    name = sampler.any(scene.shapes).name
    colors = {thing.color for thing in scene.shapes if thing.name == name}
    several = sum(thing.name == name for thing in scene.shapes) > 1
    if len(colors) > 1 or not several:
        return None
    user = sampler.phrase(ask.COLORS_OF, things=plural(name))
    return Exchange("color", user, f"The {plural(name)} are {colors.pop()}.")


def shape(sampler: Sampler, scene: Scene) -> Exchange | None:
    if (found := named(sampler, scene, "shape")) is None:
        return None
    thing, name = found
    user = sampler.phrase(
        ask.SHAPE, thing=name.replace("shape", sampler.any(("shape", "object", "thing")))
    )
    return Exchange("shape", user, f"The {name} is a {thing.name}.", about=thing)


def position(sampler: Sampler, scene: Scene) -> Exchange | None:
    if not scene.has_places or (found := named(sampler, scene, "place", shapes_only=False)) is None:
        return None
    thing, name = found
    user = sampler.phrase(ask.POSITION, thing=name)
    return Exchange("position", user, f"The {name} is {PLACE_PHRASES[thing.place]}.", about=thing)


def at_place(sampler: Sampler, scene: Scene) -> Exchange | None:
    if not scene.has_places:
        return None
    taken = {thing.place: thing for thing in scene.things}
    place = sampler.any([*taken]) if sampler.chance(0.75) else sampler.any(PLACES)
    user, where = sampler.phrase(ask.AT_PLACE, place=PLACE_PHRASES[place]), PLACE_PHRASES[place]
    if place not in taken:
        return Exchange("position", user, f"There is nothing {where}.")
    return Exchange(
        "position", user, f"There is {with_article(taken[place])} {where}.", about=taken[place]
    )


def size(sampler: Sampler, scene: Scene) -> Exchange | None:
    if not scene.has_places or (found := named(sampler, scene, "size")) is None:
        return None
    thing, name = found
    return Exchange(
        "size", sampler.phrase(ask.SIZE, thing=name), f"The {name} is {thing.size}.", about=thing
    )


def existence(sampler: Sampler, scene: Scene) -> Exchange | None:
    """Asks as often for what is there as for what is not, of which each half may be there."""
    if not scene.shapes:
        return None
    thing = sampler.any(scene.shapes)
    if sampler.chance(0.5):
        kind = sampler.any((thing.name, noun(thing)))
        return Exchange(
            "existence",
            sampler.phrase(ask.EXISTENCE, kind=kind, a_kind=article(kind)),
            f"Yes, there is {article(kind)}.",
        )
    other_color = sampler.any([each for each in colors_on(scene.background) if each != thing.color])
    other_shape = absent_shape(sampler, scene)
    kind = sampler.any((other_shape, f"{other_color} {thing.name}", f"{thing.color} {other_shape}"))
    if any(kind in (each.name, noun(each)) for each in scene.shapes):
        return None
    return Exchange(
        "existence",
        sampler.phrase(ask.EXISTENCE, kind=kind, a_kind=article(kind)),
        f"No, there is no {kind}.",
    )


def counting(sampler: Sampler, scene: Scene) -> Exchange | None:
    if (found := counted(sampler, scene)) is None:
        return None
    name, number = found
    is_are = "is" if number == 1 else "are"
    return Exchange(
        "counting",
        sampler.phrase(ask.COUNTING, things=plural(name)),
        f"There {is_are} {count_of(number, name)}.",
    )


def relation(sampler: Sampler, scene: Scene) -> Exchange | None:
    if (pair := two_named(sampler, scene)) is None:
        return None
    (first, first_name), (second, second_name) = pair
    names = {"first": first_name, "second": second_name}
    across, down = abs(first.x - second.x) > APART, abs(first.y - second.y) > APART
    if not across and not down:
        return None
    sides = (
        ("to the left of", "to the right of")
        if across and (not down or sampler.chance(0.5))
        else ("above", "below")
    )
    is_less = first.x < second.x if sides[0] == "to the left of" else first.y < second.y
    side, other_side = sides if is_less else sides[::-1]
    answer = f"the {first_name} is {side} the {second_name}."
    if sampler.chance(0.5):
        asked = sampler.any((side, other_side))
        user = sampler.phrase(ask.IS_BESIDE, side=asked, **names)
        return Exchange("relation", user, ("Yes, " if asked == side else "No, ") + answer)
    user = sampler.phrase(ask.ABOVE if side in ("above", "below") else ask.BESIDE, **names)
    return Exchange("relation", user, "T" + answer[1:])


def two_compared(sampler: Sampler, scene: Scene) -> Exchange | None:
    """Asks which of two is larger, or whether they have one colour."""
    if (pair := two_named(sampler, scene, sampler.any(("size", "color")))) is None:
        return None
    (first, first_name), (second, second_name) = pair
    names = {"first": first_name, "second": second_name}
    if first.size != second.size and not {"large", "small"} & {
        *first_name.split(),
        *second_name.split(),
    }:
        larger = first_name if first.size == "large" else second_name
        return Exchange("size", sampler.phrase(ask.LARGER, **names), f"The {larger} is larger.")
    if first.color in first_name or second.color in second_name:
        return None
    is_same = first.color == second.color
    if not is_same and sampler.chance(0.5):  # most pairs differ
        return None
    answer = f"Yes, both are {first.color}."
    if not is_same:
        answer = f"No, the {first_name} is {first.color} and the {second_name} is {second.color}."
    return Exchange("color", sampler.phrase(ask.SAME_COLOR, **names), answer)


def number(sampler: Sampler, scene: Scene) -> Exchange | None:
    found = [thing for thing in scene.texts if thing.kind == "number"]
    user = sampler.phrase(ask.NUMBER)
    if found:
        return Exchange("number", user, f"The number is {found[0].name}.", about=found[0])
    return Exchange("number", user, "There is no number.") if sampler.chance(0.02) else None


def text(sampler: Sampler, scene: Scene) -> Exchange | None:
    user = sampler.phrase(ask.TEXT)
    if not scene.texts:
        return Exchange("text", user, "There is no text.") if sampler.chance(0.02) else None
    if scene.texts[0].kind == "number" and sampler.chance(0.6):
        return None
    return Exchange("text", user, f'It says "{scene.texts[0].name}".', about=scene.texts[0])


def background(sampler: Sampler, scene: Scene) -> Exchange:
    return Exchange(
        "background", sampler.phrase(ask.BACKGROUND), f"The background is {scene.background}."
    )


def description(sampler: Sampler, scene: Scene) -> Exchange | None:
    if (answer := description_of(scene)) is None:
        return None
    about = scene.things[0] if len(scene.things) == 1 else None
    return Exchange("description", sampler.phrase(ask.DESCRIPTION), answer, about=about)
