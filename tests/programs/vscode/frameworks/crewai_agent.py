"""CrewAI: a crew of one agent with two tools and one task."""

import tools
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from tools import INSTRUCTIONS, Deep, task, tell


@tool("localSearch")
def local_search(query: str, limit: int = 5) -> str:
    """Search the notes."""
    return tools.localSearch(query, limit)


@tool("webSearch")
def web_search(query: str, deep: Deep | None = None) -> str:
    """Search the web."""
    return tools.webSearch(query, deep)


model = LLM(model=f"openai/{task['model']}", base_url=f"{task['address']}/v1", api_key=task["key"], max_retries=0)
helper = Agent(
    role="Helper", goal=INSTRUCTIONS, backstory="You keep notes.", llm=model, tools=[local_search, web_search]
)
work = Task(description=task["prompt"], expected_output="What was found.", agent=helper)
tell(str(Crew(agents=[helper], tasks=[work], tracing=False).kickoff()))
