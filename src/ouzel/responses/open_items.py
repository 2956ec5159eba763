"""An open item is an output item that the model is writing.

It makes its events, from `response.output_item.added` up to the one before
`response.output_item.done`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from msgspec import UNSET
from msgspec.structs import replace

from ouzel.generation import ToolCallDelta
from ouzel.responses import events
from ouzel.responses.event_base import Place, ResponseEvent
from ouzel.responses.events import DeltaLogprob, TopDeltaLogprob
from ouzel.responses.hosted.citations import Annotation, CitationFinder, Source
from ouzel.responses.items.packed_text import REASONING
from ouzel.responses.output_items import (
    CallItem,
    CustomToolCallItem,
    FunctionCallItem,
    ItemStatus,
    OutputMessage,
    OutputText,
    ReasoningItem,
    ReasoningText,
    SummaryText,
    WrittenItem,
)
from ouzel.wire.logprobs import ContentLogprob
from ouzel.wire.offered_tools import ToolNames

_NO_SOURCES: Mapping[int, Source] = {}


class OpenMessage:
    def __init__(
        self,
        place: Place,
        text: str = "",
        logprobs: Sequence[ContentLogprob] = (),
        *,
        annotations: Sequence[Annotation] = (),
        sources: Mapping[int, Source] = _NO_SOURCES,
    ) -> None:
        """The text may cite `sources`, by their markers."""
        self.place = place
        self._texts = [text]
        self._logprobs = list(logprobs)
        self._annotations = list(annotations)
        self._citations = CitationFinder(sources)

    def open(self) -> Iterator[ResponseEvent]:
        place = self.place
        yield events.OutputItemAdded(
            next(place.numbers),
            output_index=place.output_index,
            item=OutputMessage(place.item_id, "in_progress", []),
        )
        yield events.ContentPartAdded(*place.next(), part=OutputText("", []))

    def add(self, text: str, logprobs: Sequence[ContentLogprob]) -> Iterator[ResponseEvent]:
        self._texts.append(text)
        self._logprobs += logprobs
        yield events.OutputTextDelta(
            *self.place.next(), delta=text, logprobs=_delta_logprobs(logprobs)
        )
        for annotation in self._citations.add(text):
            yield events.AnnotationAdded(
                *self.place.next(), annotation_index=len(self._annotations), annotation=annotation
            )
            self._annotations.append(annotation)

    def close(self) -> Iterator[ResponseEvent]:
        part = self._part()
        yield events.OutputTextDone(
            *self.place.next(), text=part.text, logprobs=_delta_logprobs(part.logprobs)
        )
        yield events.ContentPartDone(*self.place.next(), part=part)

    def item(self, status: ItemStatus) -> WrittenItem:
        return OutputMessage(self.place.item_id, status, [self._part()])

    def _part(self) -> OutputText:
        return OutputText("".join(self._texts), self._logprobs, list(self._annotations))


@dataclass(frozen=True, slots=True)
class ReasoningForm:
    """Selects the fields of a reasoning item that have its text; several may be selected."""

    has_content: bool = True
    is_summarised: bool = False
    is_encrypted: bool = False


class OpenReasoning:
    def __init__(self, place: Place, form: ReasoningForm, text: str = "") -> None:
        self.place = place
        self._has_content = form.has_content
        self._is_summarised = form.is_summarised
        self._is_encrypted = form.is_encrypted
        self._texts = [text]

    def open(self) -> Iterator[ResponseEvent]:
        place = self.place
        yield events.OutputItemAdded(
            next(place.numbers),
            output_index=place.output_index,
            item=ReasoningItem(place.item_id, "in_progress", [], [], self._encrypted("")),
        )
        if self._has_content:
            yield events.ContentPartAdded(*place.next(), part=ReasoningText(""))
        if self._is_summarised:
            yield events.SummaryPartAdded(*place.next(), part=SummaryText(""))

    def add(self, text: str) -> Iterator[ResponseEvent]:
        place = self.place
        self._texts.append(text)
        if self._has_content:
            yield events.ReasoningTextDelta(*place.next(), delta=text)
        if self._is_summarised:
            yield events.SummaryTextDelta(*place.next(), delta=text)

    def close(self) -> Iterator[ResponseEvent]:
        place, text = self.place, "".join(self._texts)
        if self._has_content:
            yield events.ReasoningTextDone(*place.next(), text=text)
            yield events.ContentPartDone(*place.next(), part=ReasoningText(text))
        if self._is_summarised:
            yield events.SummaryTextDone(*place.next(), text=text)
            yield events.SummaryPartDone(*place.next(), part=SummaryText(text))

    def item(self, status: ItemStatus) -> WrittenItem:
        text = "".join(self._texts)
        summary = [SummaryText(text)] if self._is_summarised else []
        content = [ReasoningText(text)] if self._has_content else []
        return ReasoningItem(self.place.item_id, status, summary, content, self._encrypted(text))

    def _encrypted(self, text: str) -> str | None:
        return REASONING.pack(text) if self._is_encrypted else None


class OpenCall:
    def __init__(self, place: Place, index: int, call: CallItem) -> None:
        """`call` is the item with the arguments or input that it has up to now."""
        self.place = place
        self.index = index  # among the calls of its choice
        self._call = call
        self._texts = [call.input if isinstance(call, CustomToolCallItem) else call.arguments]

    @classmethod
    def begin(cls, place: Place, delta: ToolCallDelta, names: ToolNames) -> "OpenCall":
        """Creates the item of a call; `delta` is the first delta of the call, with id and name."""
        assert delta.id is not None and delta.name is not None
        name = names.for_client(delta.name)
        kind = CustomToolCallItem if delta.is_custom else FunctionCallItem
        namespace = UNSET if name.namespace is None else name.namespace
        call = kind(place.item_id, "in_progress", delta.id, name.name, "", namespace)
        return cls(place, delta.index, call)

    def open(self) -> Iterator[ResponseEvent]:
        yield events.OutputItemAdded(
            next(self.place.numbers),
            output_index=self.place.output_index,
            item=self.item("in_progress"),
        )

    def add(self, text: str) -> Iterator[ResponseEvent]:
        self._texts.append(text)
        if isinstance(self._call, CustomToolCallItem):
            yield events.CustomInputDelta(*self.place.next(), delta=text)
        else:
            yield events.ArgumentsDelta(*self.place.next(), call_id=self._call.call_id, delta=text)

    def close(self) -> Iterator[ResponseEvent]:
        text = "".join(self._texts)
        if isinstance(self._call, CustomToolCallItem):
            yield events.CustomInputDone(*self.place.next(), input=text)
        else:
            yield events.ArgumentsDone(
                *self.place.next(), call_id=self._call.call_id, arguments=text
            )

    def item(self, status: ItemStatus) -> WrittenItem:
        text = "".join(self._texts)
        if isinstance(self._call, CustomToolCallItem):
            return replace(self._call, status=status, input=text)
        return replace(self._call, status=status, arguments=text)


OpenItem = OpenMessage | OpenReasoning | OpenCall


def reopen_item(item: WrittenItem, output_index: int, numbers: Iterator[int]) -> OpenItem:
    """Opens an item that is in progress again, for example from the store, so that it can end."""
    place = Place(item.id, output_index, numbers)
    match item:
        case OutputMessage(content=[part]):
            return OpenMessage(place, part.text, part.logprobs, annotations=part.annotations)
        case OutputMessage():
            return OpenMessage(place)
        case ReasoningItem(summary=summary, content=content, encrypted_content=encrypted):
            form = ReasoningForm(
                has_content=bool(content),
                is_summarised=bool(summary),
                is_encrypted=encrypted is not None,
            )
            return OpenReasoning(place, form, "".join(part.text for part in content or summary))
        case FunctionCallItem() | CustomToolCallItem():
            return OpenCall(place, 0, item)
        case unreachable:
            assert_never(unreachable)


def _delta_logprobs(logprobs: Sequence[ContentLogprob]) -> list[DeltaLogprob]:
    return [
        DeltaLogprob(
            each.token,
            each.logprob,
            [TopDeltaLogprob(top.token, top.logprob) for top in each.top_logprobs],
        )
        for each in logprobs
    ]
