"""Runs a crew of CrewAI with one agent, whose tool the model calls.

Usage: `python crewai_client.py ROOT`.
"""

import sys

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

QUESTION = "What is the weather in Paris?"
cities: list[str] = []


def current_weather(city: str) -> str:
    """Get the current weather"""
    cities.append(city)
    return '{"temperature": 21, "condition": "sunny"}'


TOOL = tool("current_weather")(current_weather)


if __name__ == "__main__":
    llm = LLM(
        model="openai/ouzel",
        base_url=f"{sys.argv[1]}/v1",
        api_key="none",
        temperature=0,
        max_tokens=100,
    )
    assert llm.call([{"role": "user", "content": "Hello!"}])
    agent = Agent(
        role="Reporter", goal="Report", backstory="Brief", llm=llm, tools=[TOOL], max_iter=3
    )
    crew = Crew(
        agents=[agent],
        tasks=[Task(description=QUESTION, expected_output="The weather.", agent=agent)],
    )

    said = crew.kickoff().raw

    assert len(cities) == 1, (cities, said)
    assert said == "The temperature is 21 and the condition is sunny.", said
