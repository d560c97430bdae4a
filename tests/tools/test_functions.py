"""Functions as tools: schema, conversion, threads, results and faults."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import logging
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from toolwire.errors import ConfigError
from toolwire.tools.base import Output, Runnable
from toolwire.tools.functions import (
    Context,
    FunctionTool,
    Progress,
    ToolFailure,
    function_tool,
    innermost,
    serving,
    signature_of,
    tool,
)
from toolwire.tools.hints import Unsupported
from toolwire.types import Text

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@dataclass
class Place:
    city: str


class Order(BaseModel):
    item: str
    count: int = Field(ge=1)


def run(made: Runnable, arguments: dict[str, Any] | None = None, context: Context | None = None) -> Output:
    async def main() -> Output:
        with serving(context or Context()):
            return await made.run(arguments or {})

    return asyncio.run(main())


def said(output: Output) -> str:
    (part,) = output.parts
    assert isinstance(part, Text)
    return part.text


def test_schema_and_description_come_from_the_function() -> None:
    @tool
    def forecast(city: str, days: Annotated[int, Field(ge=1, le=14)] = 3, *, unit: str | None = None) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return f"{city} {days} {unit}"

    assert forecast.tool.name == "forecast"
    assert forecast.tool.description == "Tell the weather."
    assert forecast.tool.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
            "unit": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert said(run(forecast, {"city": "Rome"})) == "Rome 3 None"
    assert forecast("Oslo") == "Oslo 3 None"


def test_arguments_arrive_as_what_the_hints_say() -> None:
    @tool
    def buy(order: Order, places: list[Place]) -> str:
        return f"{type(order).__name__} {[type(place).__name__ for place in places]}"

    arguments = {"order": {"item": "tea", "count": 2}, "places": [{"city": "Rome"}]}
    assert said(run(buy, arguments)) == "Order ['Place']"


def test_invalid_arguments_are_reported_with_their_path() -> None:
    ran: list[object] = []

    @tool
    def buy(orders: list[Order]) -> None:
        ran.append(orders)

    output = run(buy, {"orders": [{"item": "tea", "count": 0}]})
    assert output.is_error
    assert "orders[0].count: Input should be greater than or equal to 1." in said(output)
    assert not ran


def test_arguments_that_nest_without_end_are_an_error() -> None:
    @tool
    def take(anything: Any) -> None: ...

    deep: list[Any] = []
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    output = run(take, {"anything": deep})
    assert output.is_error
    assert "too deep" in said(output)


def test_asynchronous_functions_run_in_the_loop_and_others_in_a_thread() -> None:
    @tool
    async def here() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool
    def there() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert said(run(here)) == "true"
    assert said(run(there)) == "false"


def test_context_variables_reach_the_thread() -> None:
    @tool
    def read() -> str:
        return variable.get()

    variable.set("seen")
    assert said(run(read)) == "seen"


def test_functions_that_block_do_not_stop_the_loop_or_each_other() -> None:
    barrier = threading.Barrier(40, timeout=5)

    @tool
    def wait() -> str:
        barrier.wait()
        return "met"

    async def main() -> list[Output]:
        return await asyncio.gather(*(wait.run({}) for _ in range(40)))

    assert {said(output) for output in asyncio.run(main())} == {"met"}


class Shop:
    """Sells things."""

    def __init__(self) -> None:
        self.sold = 0

    def sell(self, count: int) -> int:
        """Sell some."""
        self.sold += count
        return self.sold

    @staticmethod
    def price(item: str) -> str:
        return f"{item}: 3"

    @classmethod
    def title(cls) -> str:
        return cls.__name__

    async def __call__(self, item: str) -> str:
        return f"here is {item}"


def test_methods_partials_and_callable_objects() -> None:
    shop = Shop()
    assert said(run(function_tool(shop.sell), {"count": 2})) == "2"
    assert function_tool(shop.sell).tool.description == "Sell some."
    assert said(run(function_tool(Shop.price), {"item": "tea"})) == "tea: 3"
    assert said(run(function_tool(Shop.title))) == "Shop"
    bound = function_tool(functools.partial(shop.sell, 5))
    assert bound.tool.name == "sell"
    assert bound.tool.schema is not None
    assert bound.tool.schema["properties"] == {}
    assert said(run(bound)) == "7"
    called = function_tool(shop, name="hand_out")
    assert called.tool.description == "Sells things."
    assert said(run(called, {"item": "tea"})) == "here is tea"


def test_a_class_makes_its_instances() -> None:
    assert said(run(function_tool(Place), {"city": "Rome"})) == '{"city":"Rome"}'


def test_wrapped_functions_keep_their_signature() -> None:
    def loud(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def wrapper(*arguments: Any, **named: Any) -> str:
            return function(*arguments, **named).upper()

        return wrapper

    @tool
    @loud
    def greet(name: str) -> str:
        return f"hello {name}"

    assert said(run(greet, {"name": "ada"})) == "HELLO ADA"


def test_positional_only_parameters_and_open_ones() -> None:
    @tool
    def collect(first: int, second: int = 5, /, third: int = 7, **rest: int) -> list[Any]:
        return [first, second, third, rest]

    assert said(run(collect, {"first": 1, "third": 2, "other": 3})) == '[1,5,2,{"other":3}]'
    assert collect.tool.schema is not None
    assert collect.tool.schema["additionalProperties"] == {"type": "integer"}
    assert function_tool(lambda **rest: 1, name="any").tool.schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": True,
    }


def test_a_field_of_pydantic_as_default() -> None:
    @tool
    def take(count: int = Field(ge=1, description="How many."), unit: str = Field(default="kg")) -> str:
        return f"{count} {unit}"

    assert take.tool.schema is not None
    assert take.tool.schema["properties"]["count"] == {"type": "integer", "description": "How many.", "minimum": 1}
    assert take.tool.schema["required"] == ["count"]
    assert said(run(take, {"count": 2})) == "2 kg"
    assert run(take, {"count": 0}).is_error


def test_a_default_of_none_may_be_sent() -> None:
    @tool
    def take(count: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013  # people write it
        return str(count)

    assert said(run(take, {"count": None})) == "None"


def test_options_of_the_decorator() -> None:
    @tool(name="look", description="Look around.", timeout=3.0, changes_things=False)
    def anything() -> str:
        return ""

    assert (anything.tool.name, anything.tool.description) == ("look", "Look around.")
    assert (anything.timeout, anything.changes_things) == (3.0, False)
    assert function_tool(lambda: 1, name="x").changes_things is True


def test_the_context_is_filled_in_and_hidden() -> None:
    told: list[Progress] = []

    @tool
    def work(steps: int, context: Context) -> str:
        for step in range(steps):
            context.progress("going on", done=step, total=steps)
        return context.call_id

    assert work.tool.schema is not None
    assert list(work.tool.schema["properties"]) == ["steps"]

    async def main() -> Output:
        with serving(Context("call_7", emit=told.append)):
            output = await work.run({"steps": 2})
        await asyncio.sleep(0)
        return output

    assert said(asyncio.run(main())) == "call_7"
    assert told == [Progress(message="going on", done=step, total=2) for step in range(2)]


def test_a_context_by_another_name_or_optional() -> None:
    @tool
    async def work(where: Context | None = None) -> str:
        assert where is not None
        return where.call_id

    assert said(run(work, context=Context("call_8"))) == "call_8"
    assert said(run(work)) == "(no output)"


def test_an_exception_is_reported_without_a_traceback() -> None:
    raised: list[BaseException] = []

    @tool
    def fail() -> None:
        raise KeyError("no such city")

    output = run(fail, context=Context(failed=raised.append))
    assert output.is_error
    assert said(output) == "KeyError: 'no such city'"
    assert raised[0].__traceback__ is not None


def test_an_exception_is_logged_without_a_handler(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def fail() -> None:
        raise OSError("disk full")

    with caplog.at_level(logging.INFO, "toolwire.tools"):
        assert said(run(fail)) == "OSError: disk full"
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration("x"), asyncio.CancelledError("inside")])
@pytest.mark.parametrize("is_async", [True, False])
def test_nothing_it_raises_ends_the_program(error: BaseException, is_async: bool) -> None:
    async def asynchronous() -> None:
        raise error

    def blocking() -> None:
        raise error

    assert run(function_tool(asynchronous if is_async else blocking)).is_error


def test_a_long_message_of_an_exception_is_cut() -> None:
    @tool
    def fail() -> None:
        raise ValueError("x" * 1_000_000)

    assert len(said(run(fail))) < 3000


def test_cancelling_stops_an_asynchronous_function() -> None:
    ended: list[str] = []

    @tool
    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("stopped")

    async def main() -> None:
        task = asyncio.create_task(wait.run({}))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["stopped"]


def test_cancelling_asks_a_function_in_a_thread_to_stop() -> None:
    stopped = threading.Event()

    @tool
    def wait(context: Context) -> None:
        if context.cancelled.wait(5):
            stopped.set()

    async def main() -> None:
        task = asyncio.create_task(wait.run({}))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert stopped.wait(5)


def test_a_blocking_function_may_give_back_an_awaitable() -> None:
    async def later() -> str:
        return "later"

    assert said(run(function_tool(lambda: later(), name="now"))) == "later"


def test_classes_defined_beside_the_function_are_known() -> None:
    @dataclass
    class Local:
        value: int

    def take(local: Local) -> int:
        return local.value

    assert said(run(function_tool(take), {"local": {"value": 4}})) == "4"


def _star(*values: int) -> None: ...
def _generator() -> Any:
    yield 1


async def _asynchronous_generator() -> Any:
    yield 1


def _odd(what: object = None, how: Callable[[], int] = int) -> None: ...
def _unknown(what: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_star, "take a list instead"),
        (_generator, "it is a generator"),
        (_asynchronous_generator, "it is a generator"),
        (_odd, "parameter 'how'"),
        (_unknown, "'Missing'"),
        (Shop.sell, "'self' is not bound"),
        (lambda: 1, "A lambda has no name"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        function_tool(function)


def test_a_tool_implements_the_protocol() -> None:
    made: Runnable = function_tool(_odd_free)
    assert isinstance(made, FunctionTool)
    assert repr(made) == "FunctionTool('_odd_free')"


def _odd_free() -> None: ...


def work(first: int, second: int = 2, /, *, third: str = "x", context: Context) -> None:
    """Work."""


async def wait() -> None: ...


def test_arguments_are_bound_to_their_parameters() -> None:
    signature = signature_of(work, {})
    context = Context()
    assert signature.bind({"first": 1, "third": "y"}, context) == ([1, 2], {"third": "y", "context": context})
    assert signature.contexts == {"context"}
    assert signature.description == "Work."


def test_asynchronous_functions_are_recognised() -> None:
    class Called:
        async def __call__(self) -> None: ...

    functions = [wait, functools.partial(wait), Called(), work]
    assert [signature_of(function, {}).is_async for function in functions] == [True, True, True, False]


def test_partials_are_looked_through() -> None:
    assert innermost(functools.partial(functools.partial(work, 1), second=2)) is work


def test_no_reference_to_the_caller_is_kept() -> None:
    class Large:
        pass

    names: dict[str, Any] = {"large": Large()}
    watched = weakref.ref(names["large"])
    signature = signature_of(work, names)
    names.clear()
    gc.collect()
    assert watched() is None
    assert signature.shape.convert({"first": 1}) == {"first": 1}


def test_faults_name_the_parameter() -> None:
    def odd(good: int, bad: complex) -> None: ...

    with pytest.raises(Unsupported, match="parameter 'bad': complex"):
        signature_of(odd, {})


def test_a_function_that_fails_is_called_again() -> None:
    tried: list[str] = []
    noted: list[Progress] = []

    def fetch(city: str) -> str:
        tried.append(city)
        if len(tried) < 2:
            raise ConnectionError("reset")
        return "ok"

    async def main() -> Output:
        with serving(Context("c", emit=noted.append)):
            return await function_tool(fetch, retries=1).run({"city": "Rome"})

    assert asyncio.run(main()) == Output.of_text("ok")
    assert tried == ["Rome", "Rome"]
    assert [progress.message for progress in noted] == ["retry 1 of 1 after ConnectionError"]


def test_the_last_exception_is_reported_and_a_failure_for_the_model_is_not_retried() -> None:
    tried: list[int] = []

    def refuse() -> None:
        tried.append(1)
        raise ToolFailure("There is no such city; try Rome.")

    output = asyncio.run(function_tool(refuse, retries=3).run({}))
    assert output == Output.of_text("There is no such city; try Rome.", is_error=True)
    assert len(tried) == 1
    with pytest.raises(ConfigError, match="retries"):
        function_tool(refuse, retries=-1)


def test_a_context_with_dependencies_is_no_part_of_the_schema() -> None:
    def look(context: Context[dict[str, int]], name: str) -> int:
        return context.deps[name]

    made = function_tool(look)
    assert made.tool.schema is not None
    assert list(made.tool.schema["properties"]) == ["name"]
    assert made.deps_type is dict

    async def main() -> Output:
        with serving(Context("c", deps={"a": 1})):
            return await made.run({"name": "a"})

    assert asyncio.run(main()) == Output.of_text("1")
