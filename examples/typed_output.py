"""An answer with a type: the agent looks something up with a tool and returns a dataclass."""

from dataclasses import dataclass

from toolwire import Agent, tool


@dataclass
class Trip:
    city: str
    days: int
    is_rainy: bool


@tool(changes_things=False)
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: rain for 3 days"


def main() -> None:
    planner = Agent("demo/echo-tools", [get_weather], output_type=Trip, instructions="Plan a trip.")
    result = planner.run_sync('final_answer city="Rome" days=3 is_rainy=true')
    trip = result.output
    print(f"{trip.city}, {trip.days} days, {'umbrella' if trip.is_rainy else 'sunglasses'}")
    print(f"{result.reason}, {result.usage.input + result.usage.output > 0}, cost {result.cost}")


if __name__ == "__main__":
    main()
