"""Uses instructor in each of the modes that send different requests.

Usage: `python instructor_client.py ROOT`.
"""

import sys

import instructor
from openai import OpenAI
from pydantic import BaseModel, Field

MODES = (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA)


class Guest(BaseModel):
    """A guest."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=99)


def gets_an_output_of_a_type(mode: instructor.Mode) -> None:
    client = instructor.from_openai(
        OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none", max_retries=0), mode=mode
    )
    messages = [{"role": "user", "content": "Who comes?"}]
    request = {"model": "ouzel", "messages": messages, "temperature": 0, "max_retries": 0}
    assert isinstance(client.chat.completions.create(response_model=Guest, **request), Guest)
    *_, whole = client.chat.completions.create_partial(response_model=Guest, **request)
    Guest.model_validate(whole.model_dump())


if __name__ == "__main__":
    for mode in MODES:
        gets_an_output_of_a_type(mode)
