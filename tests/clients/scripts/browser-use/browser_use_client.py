"""Uses browser-use's chat model, whole and with a structured answer.

Usage: `python browser_use_client.py ROOT`.

No browser is driven, because the demo model cannot plan actions on a page.
"""

import asyncio
import sys

from browser_use import ChatOpenAI
from browser_use.llm.messages import SystemMessage, UserMessage
from pydantic import BaseModel


class Action(BaseModel):
    city: str
    done: bool


async def main() -> None:
    model = ChatOpenAI(
        model="ouzel",
        base_url=f"{sys.argv[1]}/v1",
        api_key="none",
        temperature=0,
        max_completion_tokens=100,
    )
    said = await model.ainvoke([SystemMessage(content="Be brief."), UserMessage(content="Hello!")])
    assert said.completion, said
    assert said.usage and said.usage.completion_tokens

    filled = await model.ainvoke(
        [UserMessage(content="The weather in Paris?")], output_format=Action
    )
    assert isinstance(filled.completion, Action), filled


if __name__ == "__main__":
    asyncio.run(main())
