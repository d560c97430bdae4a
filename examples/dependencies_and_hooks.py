"""Dependencies for tools, hooks around calls, and retries of a tool that fails at first."""

from dataclasses import dataclass, field

from toolwire import Agent, AgentHooks, CompleteEvent, Context, Output, ToolCallEvent, ToolFailure, tool


@dataclass
class Shop:
    stock: dict[str, int]
    requests: list[str] = field(default_factory=list)


@tool(timeout=5, retries=1, changes_things=False)
def count_items(item: str, context: Context[Shop]) -> int:
    """How many of an item are in stock."""
    shop = context.deps
    shop.requests.append(item)
    if len(shop.requests) == 1:
        raise ConnectionError("the database restarts")  # the second try succeeds
    if item not in shop.stock:
        raise ToolFailure(f"There is no {item}.")
    return shop.stock[item]


class Journal(AgentHooks):
    def after_call(self, call: ToolCallEvent, output: Output) -> None:
        print(f"{call.name} {call.arguments}: {output.text}")

    async def after_task(self, complete: CompleteEvent) -> None:
        print(f"ended: {complete.reason}")


def main() -> None:
    clerk = Agent("demo/echo-tools", [count_items], hooks=Journal())
    shop = Shop({"lamp": 7})
    print(clerk.run_sync('count_items item="lamp"', deps=shop).output)
    print(clerk.run_sync('count_items item="sofa"', deps=shop).output)
    print(shop.requests)


if __name__ == "__main__":
    main()
