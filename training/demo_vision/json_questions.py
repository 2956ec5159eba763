"""Questions that are answered in JSON."""

import json
from collections.abc import Mapping

from training.demo_vision import phrasings_json as ask
from training.demo_vision.exchanges import Exchange
from training.demo_vision.naming import counted, named, plural
from training.demo_vision.sampling import Sampler
from training.demo_vision.scene import Scene, Thing
from training.demo_vision.values import SHAPES


def exchange(user: str, value: object, about: Thing | None = None) -> Exchange:
    return Exchange("JSON", user, json.dumps(value), "json", about)


def properties(thing: Thing) -> dict[str, object]:
    return {"shape": thing.name, "color": thing.color, "size": thing.size, "place": thing.place}


def objects_of(scene: Scene) -> object:
    """Returns things one by one, or the number of each shape."""
    if not scene.has_places:
        return counts_of(scene)
    return [
        {**name_of_kind(thing), "color": thing.color, "place": thing.place}
        for thing in scene.things
    ]


def name_of_kind(thing: Thing) -> dict[str, object]:
    return {thing.kind: int(thing.name) if thing.kind == "number" else thing.name}


def counts_of(scene: Scene) -> Mapping[str, int]:
    names = [thing.name for thing in scene.shapes]
    return {shape: names.count(shape) for shape in SHAPES if shape in names}


def objects(sampler: Sampler, scene: Scene) -> Exchange | None:
    if not scene.has_places:
        return exchange(sampler.phrase(ask.JSON_COUNTS), counts_of(scene))
    return exchange(sampler.phrase(ask.JSON_OBJECTS), objects_of(scene))


def thing(sampler: Sampler, scene: Scene) -> Exchange | None:
    keys = sampler.rng.sample(("shape", "color", "size", "place"), sampler.any((1, 2, 2, 3)))
    if not scene.has_places or (found := named(sampler, scene, *keys)) is None:
        return None
    asked, name = found
    listed = " and ".join([", ".join(keys[:-1]), keys[-1]] if len(keys) > 1 else keys)
    values = properties(asked)
    return exchange(
        sampler.phrase(ask.JSON_THING, thing=name, keys=listed),
        {key: values[key] for key in keys},
        asked,
    )


def count(sampler: Sampler, scene: Scene) -> Exchange | None:
    if (found := counted(sampler, scene)) is None:
        return None
    return exchange(sampler.phrase(ask.JSON_COUNT, things=plural(found[0])), {"count": found[1]})


def text(sampler: Sampler, scene: Scene) -> Exchange | None:
    if not scene.texts:
        return None
    found = scene.texts[0]
    return exchange(sampler.phrase(ask.JSON_TEXT, kind=found.kind), name_of_kind(found), found)


def background(sampler: Sampler, scene: Scene) -> Exchange:
    return exchange(sampler.phrase(ask.JSON_BACKGROUND), {"background": scene.background})
