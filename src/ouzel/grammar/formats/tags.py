"""Reads tags: single tags, tags after trigger texts, and rows of tags; the content is a format."""

from collections.abc import Callable
from dataclasses import dataclass

from ouzel.grammar.caps import MAX_TAGS, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats.members import Members
from ouzel.grammar.write.nodes import (
    NOTHING,
    Choice,
    Enclosed,
    Foreign,
    Literal,
    Node,
    Regular,
    Repeat,
    Sequence,
    flatten,
    optional,
)
from ouzel.grammar.write.spelling import Spelling
from ouzel.grammar.write.writer import GrammarWriter, quote

ReadFormat = Callable[[object, str], Node]


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag to write."""

    begin: str
    inside: Node  # content and end


@dataclass(frozen=True, slots=True)
class TagReader:
    """Reads the three formats with tags."""

    writer: GrammarWriter
    spelling: Spelling
    read_format: ReadFormat

    def tag(self, members: Members) -> Node:
        tag = self._tag(members)
        return Sequence((self.spelling.literal(tag.begin), tag.inside))

    def triggered(self, members: Members) -> Node:
        """Reads text in which a trigger begins a tag.

        With `at_least_one` a tag comes first, or, with `allow_text_before` (ours), somewhere. With
        `stop_after_first` nothing follows it.
        """
        tags_of = self._by_trigger(members)
        text = self.spelling.any_text(members.texts("excludes", at_least=0))
        is_required, stops = members.flag("at_least_one"), members.flag("stop_after_first")
        text_may_lead = members.flag("allow_text_before") or not is_required
        members.finish()
        bodies = {trigger: self._rest(trigger, tags) for trigger, tags in tags_of.items()}
        first = Choice(
            tuple(
                Sequence((self.spelling.literal(trigger), body)) for trigger, body in bodies.items()
            )
        )
        if stops and not text_may_lead:
            return first
        led = Choice(
            tuple(
                Sequence((self._text_to(trigger, text), body)) for trigger, body in bodies.items()
            )
        )
        start = led if text_may_lead else first
        match (is_required, stops):
            case (True, True):
                return start
            case (True, False):
                return Sequence((start, Repeat(led, 0, None), text))
            case (False, True):
                return Choice((led, text))
            case _:
                return Sequence((Repeat(led, 0, None), text))

    def separated(self, members: Members) -> Node:
        tags = self._tags(members)
        separator = self.spelling.literal(members.text("separator"))
        is_required, stops = members.flag("at_least_one"), members.flag("stop_after_first")
        members.finish()
        one = Choice(
            tuple(Sequence((self.spelling.literal(tag.begin), tag.inside)) for tag in tags)
        )
        more = NOTHING if stops else Repeat(Sequence((separator, one)), 0, None)
        row = Sequence((one, more))
        return row if is_required else optional(row)

    def _tags(self, members: Members) -> list[Tag]:
        place, items = members.place("tags"), members.items("tags")
        check_at_most(f"the number of {place}", len(items), MAX_TAGS)
        return [self._tag(Members(item, f"{place}[{index}]")) for index, item in enumerate(items)]

    def _tag(self, members: Members) -> Tag:
        if "type" in members and members.text("type") != "tag":
            raise GrammarError(f"{members.place('type')} must be 'tag'")
        begin = members.text("begin")
        content = self.read_format(members.take("content"), members.place("content"))
        ends = self._ends(members)
        members.finish()
        if ends == [""]:
            return Tag(begin, content)
        end = Choice(tuple(self.spelling.literal(end) for end in ends))
        return Tag(begin, Enclosed(content, end if len(ends) > 1 else end.options[0]))

    def _ends(self, members: Members) -> list[str]:
        value = members.take("end")
        ends = value if isinstance(value, list) else [value]
        texts = [end for end in ends if isinstance(end, str)]
        if not ends or len(texts) != len(ends):
            raise GrammarError(f"{members.place('end')} must be a string or a list of strings")
        if "" in texts and len(texts) > 1:
            raise GrammarError(
                f"{members.place('end')} must not have an empty string beside others"
            )
        return texts

    def _by_trigger(self, members: Members) -> dict[str, list[Tag]]:
        triggers, tags = members.texts("triggers"), self._tags(members)
        _check_triggers(triggers, members.place("triggers"))
        tags_of: dict[str, list[Tag]] = {trigger: [] for trigger in triggers}
        for index, tag in enumerate(tags):
            matching = [trigger for trigger in triggers if tag.begin.startswith(trigger)]
            if len(matching) != 1:
                place = f"{members.place('tags')}[{index}].begin"
                raise GrammarError(
                    f"{place} must begin with exactly one of the triggers, given {tag.begin!r}"
                )
            tags_of[matching[0]].append(tag)
        for trigger, found in tags_of.items():
            if not found:
                raise GrammarError(
                    f"{members.place('triggers')} has {trigger!r}, but no tag begins with it"
                )
        return tags_of

    def _rest(self, trigger: str, tags: list[Tag]) -> Node:
        """Writes the text after the trigger as one rule, however often it is used."""
        after = [
            Sequence((self.spelling.literal(tag.begin.removeprefix(trigger)), tag.inside))
            for tag in tags
        ]
        node: Node = Choice(tuple(after)) if len(after) > 1 else after[0]
        return Foreign(self.writer.rule(self.writer.expression(node, is_last=False)))

    def _text_to(self, trigger: str, text: Regular) -> Node:
        """Writes the text up to the first trigger.

        A mark is no text; any other trigger needs a lexeme that stops at it.
        """
        literal = self.spelling.literal(trigger)
        parts = flatten(literal)
        if not isinstance(parts[0], Literal):
            return Sequence((text, literal))
        scan = self.writer.lazy(f"{text.expression} {quote(parts[0].text)}")
        return Sequence((Foreign(scan), *parts[1:]))


def _check_triggers(triggers: list[str], place: str) -> None:
    for trigger in triggers:
        if not trigger:
            raise GrammarError(f"{place} must not have an empty string")
        for other in triggers:
            if other is not trigger and trigger in other:
                raise GrammarError(f"{place} has {other!r}, which contains {trigger!r}")
