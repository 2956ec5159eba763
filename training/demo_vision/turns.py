"""Second turns about the same picture, and what a first turn may be."""

import json
from collections.abc import Callable

from training.demo_vision import json_questions, phrasings_json, questions
from training.demo_vision import phrasings as ask
from training.demo_vision.exchanges import Exchange
from training.demo_vision.naming import name_of
from training.demo_vision.sampling import Sampler
from training.demo_vision.scene import Scene
from training.demo_vision.values import PLACE_PHRASES

Question = Callable[[Sampler, Scene], Exchange | None]

# How often each is asked. What no scene of a level gives is drawn again.
SHARES: dict[Question, float] = {
    questions.color: 9,
    questions.shape: 9,
    questions.position: 7,
    questions.at_place: 7,
    questions.size: 4,
    questions.existence: 7,
    questions.counting: 14,
    questions.relation: 8,
    questions.two_compared: 5,
    questions.number: 30,
    questions.text: 34,
    questions.background: 4,
    questions.description: 10,
    json_questions.objects: 5,
    json_questions.thing: 4,
    json_questions.count: 3,
    json_questions.text: 8,
    json_questions.background: 1,
}
NUM_TRIES = 20


def question(sampler: Sampler, scene: Scene) -> Exchange:
    """Draws one that the scene gives; its background can always be asked for."""
    for _ in range(NUM_TRIES):
        if (exchange := sampler.weighted(SHARES)(sampler, scene)) is not None:
            return exchange
    return questions.background(sampler, scene)


def second_turn(sampler: Sampler, scene: Scene, first: Exchange) -> Exchange:
    """Asks on: about the same thing, for the same of another thing, in JSON, or anything else."""
    kind = sampler.rng.random()
    found = None
    if kind < 0.08:
        found = Exchange("", sampler.phrase(ask.THANKS), "You are welcome!")
    elif kind < 0.6 and first.about is not None:
        found = about_it(sampler, scene, first)
    elif kind < 0.8 and first.skill in ("color", "position", "size"):
        found = and_the(sampler, scene, first)
    elif first.skill == "description":
        objects = json.dumps(json_questions.objects_of(scene))
        found = Exchange("", sampler.phrase(phrasings_json.NOW_JSON), objects, "json")
    return found or question(sampler, scene)


def about_it(sampler: Sampler, scene: Scene, first: Exchange) -> Exchange | None:
    """Asks for what the first turn has not said."""
    thing = first.about
    assert thing is not None
    said = f" {first.user} {first.answer} ".lower()
    answers = {
        ask.IT_COLOR: ("color", thing.color, f"It is {thing.color}."),
        ask.IT_POSITION: ("place", thing.place, f"It is {PLACE_PHRASES.get(thing.place)}."),
        ask.IT_SIZE: ("size", thing.size, f"It is {thing.size}."),
        ask.IT_SHAPE: (
            "shape",
            thing.name if thing.kind == "shape" else "",
            f"It is a {thing.name}.",
        ),
    }
    open_ones = [
        (texts, answer)
        for texts, (_, value, answer) in answers.items()
        if value and value not in said
    ]
    if not open_ones:
        return None
    texts, answer = sampler.any(open_ones)
    return Exchange("", sampler.phrase(texts), answer)


def and_the(sampler: Sampler, scene: Scene, first: Exchange) -> Exchange | None:
    """Asks the same of another thing."""
    key = "place" if first.skill == "position" else first.skill
    others = [thing for thing in scene.shapes if thing != first.about]
    if first.about is None or not others or not scene.has_places:
        return None
    thing = sampler.any(others)
    if (name := name_of(sampler, scene, thing, key, "place")) is None:
        return None
    value = (
        PLACE_PHRASES[thing.place]
        if key == "place"
        else thing.color
        if key == "color"
        else thing.size
    )
    return Exchange("", sampler.phrase(ask.AND_THE, thing=name), f"The {name} is {value}.")
