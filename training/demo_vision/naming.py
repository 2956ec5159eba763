"""How the things of a scene are called in questions and answers."""

from training.demo_vision.sampling import Sampler
from training.demo_vision.scene import Scene, Thing
from training.demo_vision.values import COLORS, PLACE_PHRASES, SHAPES

Named = tuple[Thing, str]


def plural(name: str) -> str:
    return name + ("es" if name.endswith("s") else "s")


def article(noun: str) -> str:
    return ("an " if noun[0] in "aeio" else "a ") + noun


def noun(thing: Thing) -> str:
    """Returns what one would answer: "red circle", "number 47 in red"."""
    if thing.kind == "shape":
        return f"{thing.color} {thing.name}"
    return f"{thing.kind} {written(thing)} in {thing.color}"


def written(thing: Thing) -> str:
    return thing.name if thing.kind == "number" else f'"{thing.name}"'


def with_article(thing: Thing) -> str:
    return article(noun(thing)) if thing.kind == "shape" else f"the {noun(thing)}"


def names_of(thing: Thing, *without: str) -> list[str]:
    """Returns what a thing can be called in a question, without its colour, shape, size or place."""
    if thing.kind != "shape":
        return [thing.kind]
    shape = "shape" if "shape" in without else thing.name
    color = "" if "color" in without else thing.color
    size = "" if "size" in without else thing.size
    names = [f"{color} {shape}", f"{size} {shape}", f"{size} {color} {shape}", shape, shape, shape]
    if thing.place and "place" not in without:
        names.append(f"{shape} {PLACE_PHRASES[thing.place]}")
    return [" ".join(name.split()) for name in names]


def matches(thing: Thing, name: str) -> bool:
    """Returns whether a name of `names_of` fits a thing."""
    if thing.kind != "shape":
        return name == thing.kind
    head, _, place = name.partition(" the ")
    if place and place != thing.place:
        return False
    return set(head.split()) - {"in", "on", "at"} <= {thing.color, thing.name, thing.size, "shape"}


def name_of(sampler: Sampler, scene: Scene, thing: Thing, *without: str) -> str | None:
    """Returns a name that fits this thing only."""
    names = [
        name
        for name in names_of(thing, *without)
        if sum(matches(each, name) for each in scene.things) == 1
    ]
    return sampler.any(names) if names else None


def named(sampler: Sampler, scene: Scene, *without: str, shapes_only: bool = True) -> Named | None:
    """Draws a thing that can be named."""
    for thing in sampler.shuffled(scene.shapes if shapes_only else scene.things):
        if name := name_of(sampler, scene, thing, *without):
            return thing, name
    return None


def absent_shape(sampler: Sampler, scene: Scene) -> str:
    return sampler.any(
        [shape for shape in SHAPES if all(thing.name != shape for thing in scene.things)]
    )


def count_of(number: int, name: str) -> str:
    return f"1 {name}" if number == 1 else f"{number or 'no'} {plural(name)}"


def counted(sampler: Sampler, scene: Scene) -> tuple[str, int] | None:
    """Draws what to count, with the number of it."""
    if not scene.shapes:
        return None
    thing = sampler.any(scene.shapes)
    names = [
        "shape",
        "shape",
        thing.name,
        f"{thing.color} shape",
        noun(thing),
        absent_shape(sampler, scene),
    ]
    name = sampler.rng.choices(names, (3, 3, 4, 3, 4, 1))[0]
    return name, sum(matches(each, name) for each in scene.shapes)


def two_named(sampler: Sampler, scene: Scene, *without: str) -> tuple[Named, Named] | None:
    if not scene.has_places or len(scene.shapes) < 2:
        return None
    first, second = sampler.rng.sample(scene.shapes, 2)
    first_name, second_name = (
        name_of(sampler, scene, thing, "place", *without) for thing in (first, second)
    )
    return ((first, first_name), (second, second_name)) if first_name and second_name else None


def description_of(scene: Scene) -> str | None:
    """Says what is where, or of many shapes how many there are of each kind."""
    if scene.has_places:
        named = [f"{_at_length(thing)} {PLACE_PHRASES[thing.place]}" for thing in scene.things]
    elif len(scene.things) > 4:
        named = [count_of(number, name) for name, number in groups(scene)]
    else:
        return None
    listed = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    return f"{listed[:1].upper()}{listed[1:]}, on {article(scene.background)} background."


def _at_length(thing: Thing) -> str:
    return article(f"{thing.size} {noun(thing)}") if thing.size else f"the {noun(thing)}"


def groups(scene: Scene) -> list[tuple[str, int]]:
    """Returns the kinds of shapes with their numbers, the most frequent first."""
    names = [noun(thing) for thing in scene.shapes]
    order = [f"{color} {shape}" for color in COLORS for shape in SHAPES]
    return sorted(
        ((name, names.count(name)) for name in {*names}),
        key=lambda each: (-each[1], order.index(each[0])),
    )
