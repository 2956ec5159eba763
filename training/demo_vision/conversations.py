"""The mix: what is asked about which pictures, in how many turns, in which order."""

from collections.abc import Callable

from training.demo_vision import phrasings_pairs as ask
from training.demo_vision.exchanges import (
    Conversation,
    Exchange,
    Item,
    Message,
    assistant_message,
    user_message,
)
from training.demo_vision.pairs import Pair, any_pair, changed, pair_question
from training.demo_vision.sampling import Sampler
from training.demo_vision.scene import Scene, SceneMaker
from training.demo_vision.talk import small_talk, system_prompt
from training.demo_vision.turns import question, second_turn
from training.demo_vision.values import words

SKILLS = (
    *words(
        "color shape position size existence counting relation number text background description JSON comparison"
    ),
    "second turn",
    "next picture",
    "small talk",
)
LEVELS = (1, 2, 3)  # 1: pictures of single things; 2: of a few; 3: everything

NUM_QUESTIONS = 6  # about one picture
NUM_PAIR_QUESTIONS = 4
NUM_TALKS = 6


class ItemMaker:
    """Draws items of one level."""

    def __init__(self, sampler: Sampler, level: int) -> None:
        self._sampler = sampler
        self._scenes = SceneMaker(sampler, level)
        shares: list[tuple[Callable[[], Item], tuple[float, float, float]]] = [
            (self.one_picture, (1.0, 0.86, 0.65)),
            (self.text_first, (0.0, 0.06, 0.1)),
            (self.two_pictures, (0.0, 0.05, 0.18)),
            (self.next_picture, (0.0, 0.0, 0.04)),
            (self.talk, (0.0, 0.03, 0.03)),
        ]
        self._shares = {maker: share[level - 1] for maker, share in shares}

    def item(self) -> Item:
        return self._sampler.weighted(self._shares)()

    def one_picture(self) -> Item:
        scene = self._scenes.scene()
        return self._item((scene,), lambda: self._about(scene), NUM_QUESTIONS)

    def text_first(self) -> Item:
        """The question stands before its picture, as many clients send it."""
        scene = self._scenes.scene()
        return self._item(
            (scene,), lambda: self._about(scene, text_first=True), self._sampler.any((1, 2))
        )

    def two_pictures(self) -> Item:
        pair = any_pair(self._sampler, self._scenes)
        return self._item(pair.scenes, lambda: self._about_both(pair), NUM_PAIR_QUESTIONS)

    def next_picture(self) -> Item:
        """The second picture comes with the second turn."""
        sampler = self._sampler
        pair = (
            changed(sampler, self._scenes)
            if sampler.chance(0.5)
            else any_pair(sampler, self._scenes)
        )
        return self._item(pair.scenes, lambda: self._one_after_the_other(pair), 1)

    def talk(self) -> Item:
        def two_turns() -> Conversation:
            exchanges = [small_talk(self._sampler) for _ in range(self._sampler.any((1, 1, 2)))]
            return conversation("small talk", exchanges, 0)

        return self._item((), two_turns, NUM_TALKS)

    def _item(
        self, scenes: tuple[Scene, ...], make: Callable[[], Conversation], count: int
    ) -> Item:
        system = system_prompt(self._sampler)
        before: list[Message] = [{"role": "system", "content": system}] if system else []
        made: dict[str, Conversation] = {}  # by what is asked, so that nothing is asked twice
        for _ in range(count):
            each = make()
            asked = str([message["content"] for message in each.messages[:-1]])
            made[asked] = Conversation(each.skill, before + each.messages, each.check)
        return Item(scenes, [*made.values()])

    def _about(self, scene: Scene, *, text_first: bool = False) -> Conversation:
        first = question(self._sampler, scene)
        if self._sampler.chance(0.75):
            return conversation(first.skill, [first], 1, text_first=text_first)
        second = second_turn(self._sampler, scene, first)
        return conversation("second turn", [first, second], 1, text_first=text_first)

    def _about_both(self, pair: Pair) -> Conversation:
        return conversation("comparison", [pair_question(self._sampler, pair)], 2)

    def _one_after_the_other(self, pair: Pair) -> Conversation:
        sampler = self._sampler
        first, second = question(sampler, pair.first), question(sampler, pair.second)
        if pair.difference and sampler.chance(0.7):
            second = Exchange("", sampler.phrase(ask.CHANGED), pair.difference)
        messages = conversation("", [first], 1).messages + conversation("", [second], 1).messages
        return Conversation("next picture", messages, second.check)


def conversation(
    skill: str, exchanges: list[Exchange], num_pictures: int, *, text_first: bool = False
) -> Conversation:
    """The pictures come with the first turn."""
    messages = []
    for number, exchange in enumerate(exchanges):
        messages.append(
            user_message(exchange.user, 0 if number else num_pictures, text_first=text_first)
        )
        messages.append(assistant_message(exchange.answer))
    return Conversation(skill, messages, exchanges[-1].check)
