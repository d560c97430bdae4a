"""One run of `toolwire chat`: opens configuration, model, tools, agent and terminal in this order."""

from __future__ import annotations

import asyncio
import difflib
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...agent import Agent, file
from ...agent.agent import AnyTool, runnables_of
from ...agent.loop import Terms
from ...catalog.found import found_config
from ...catalog.router import router_for
from ...config.file import BackendConfig, Config, default_store_path
from ...errors import BadRequest, ConfigError, GatewayError, InternalError, UpstreamError, quote
from ...memory.store import Store, open_store
from ...memory.store.memory import MemoryStore
from ...telemetry.hourly import HourlyCounts
from ...tools import Runnable
from ..clients.gateway import DEMO, GatewayStatus, key_from_environment, look
from ..models import ModelListing, ask, first_chat_model, gateway_of, plain
from .approvals import ApprovalPrompt, Approvals
from .command import ChatOptions
from .display import Display, JsonLines, Reporter, counted
from .editor import open_lines
from .loop_thread import LoopThread
from .markdown import MarkdownStream
from .prompt import Commands, converse
from .questions import QuestionPrompt, Questions
from .saved import LAST, SavedChats
from .session import ChatSession, load_conversation
from .terminal import TypedLines, history_path, terminal_on

if TYPE_CHECKING:
    from ...server.stats_writer import Recorder

INTERRUPTED = 130
_CODES = {"error": 1, "interrupted": INTERRUPTED}
_MAX_NAMED = 12  # tools
_READ_TOOLS = ("read", "list", "glob", "grep")


def start(options: ChatOptions, question: str | None) -> int:
    """Returns the exit code. Without a question the chat is interactive."""
    with LoopThread() as loop:
        run = _Run(options, loop)
        code = run.run(question)
    run.report_problems()
    return code


class _Run:
    def __init__(self, options: ChatOptions, loop: LoopThread) -> None:
        self._options = options
        self._loop = loop
        self._output = terminal_on(sys.stdout)
        # In a pipe only the model's text goes to stdout.
        is_shared = sys.stdout.isatty() and not options.json
        self._notes = self._output if is_shared else terminal_on(sys.stderr)
        has_markdown = self._output.has_colour and not options.plain
        markdown = MarkdownStream(self._output) if has_markdown else None
        self._reporter: Reporter = (
            JsonLines(sys.stdout, self._notes)
            if options.json
            else Display(self._output, self._notes, markdown=markdown)
        )
        self._saved = SavedChats()
        self._names: list[str] = []
        self._config = Config() if options.url else loop.run(found_config(options.config))
        self._key = key_from_environment().reveal() if options.url else ""
        self._can_ask = sys.stdin.isatty() and sys.stdout.isatty() and not options.json
        self._questions = Questions()
        self._tools = tuple(tools_of(options, self._questions if self._can_ask else None))
        self._counts = ChatCounts(self._config)

    def run(self, question: str | None) -> int:
        session, lines = self._session(is_interactive=question is None)
        for warning in [warning for tool in self._tools for warning in getattr(tool, "warnings", ())]:
            self._reporter.note(warning)
        attached = [file(path) for path in self._options.image]
        if question is not None:
            return _CODES.get(session.answer([question, *attached] if attached else question), 0)
        if lines.problem:
            self._reporter.note(lines.problem)
        if self._options.model:
            self._reporter.note(f"toolwire {__version__}, model {session.agent.model}")
        if messages := session.conversation.messages:
            self._reporter.note(f"continuing {self._options.resume}, which has {counted(len(messages), 'message')}")
        if self._tools:
            self._reporter.note(f"tools: {list_names(self._loop.run(runnables_of(self._tools)))}")
        self._reporter.note("/help lists the commands, Ctrl-C stops an answer, Ctrl-D exits.")
        commands = Commands(session, self._tools, self._check, self._saved, self._models)
        commands.attached += attached
        self._autosave(session)
        return converse(session, commands, lines, self._output)

    def _autosave(self, session: ChatSession) -> None:
        """Without --save, an interactive chat is saved in the state folder, where /sessions finds it."""
        if self._options.save is not None:
            return
        try:
            path = self._resumed() or self._saved.new_path(datetime.now())
        except OSError as error:
            self._reporter.note(f"this chat is not saved: {error.strerror or error}")
            return
        session.save_path, session.is_autosaved = path, True

    def _resumed(self) -> Path | None:
        """The file of --resume."""
        given = self._options.resume
        return self._saved.find(LAST) if given is not None and str(given) == LAST and not given.exists() else given

    def _models(self) -> Sequence[str]:
        """The names for completion, requested once."""
        if not self._names:
            with suppress(GatewayError):
                if self._options.url:
                    self._names = list(look(self._options.url.rstrip("/").removesuffix("/v1"), self._key).models)
                else:
                    self._names = self._loop.run(model_names(self._config))
        return self._names

    def report_problems(self) -> None:
        """Problems that are known only after everything is closed."""
        if self._counts.problem:
            self._reporter.note(self._counts.problem)

    def _session(self, *, is_interactive: bool) -> tuple[ChatSession, TypedLines]:
        options = self._options
        resumed = self._resumed()
        conversation = load_conversation(resumed) if resumed is not None else None
        model = self._model(conversation.model if conversation is not None else "")
        approvals = Approvals(is_all_allowed=options.yes)
        if not options.url:  # else the gateway counts
            self._loop.hold(self._counts.record())
        agent = Agent(
            model,
            self._tools,
            url=options.url or "",
            key=self._key,
            config=self._config,
            terms=Terms(max_iterations=options.max_iterations),
            approve=approvals.approve,
            effort=options.effort,
            telemetry=self._counts.telemetry,
        )
        if options.mcp:
            self._notes.live("  starting the servers ...", "dim")
        self._loop.hold(agent)
        self._notes.clear()
        is_plain = options.plain or not self._output.has_screen
        history = history_path() if is_interactive else None
        lines = open_lines(history, is_plain=is_plain, has_colour=self._output.has_colour)
        prompt = ApprovalPrompt(self._notes, lines, approvals)
        session = ChatSession(
            agent,
            self._loop,
            self._reporter,
            approvals,
            prompt.decide if self._can_ask else None,
            options.save,
            self._questions,
            QuestionPrompt(self._notes, lines).reply if self._can_ask else None,
        )
        session.conversation = conversation or session.conversation
        return session, lines

    def _model(self, last: str) -> str:
        """The requested model, else the last one of the resumed conversation, else the first that is found."""
        if self._options.model:
            self._check(self._options.model)
            return self._options.model
        if last:
            self._reporter.note(f"toolwire {__version__}, model {last}, the last one of this conversation")
            return last
        url = self._options.url
        found = first_model_at(url, self._key) if url else self._loop.run(first_model(self._config))
        why = "no other was found; it only shows how tools work" if found == DEMO else "the first that was found"
        self._reporter.note(f"toolwire {__version__}, model {found} ({why}; --model selects another)")
        return found

    def _check(self, model: str) -> None:
        if not self._options.url:
            self._loop.run(check_model(self._config, model))
        elif (names := self._models()) and model not in names:
            similar = difflib.get_close_matches(model, names, 3, 0.4)
            hint = f"Similar names: {', '.join(similar)}." if similar else "`toolwire models` lists the models."
            raise BadRequest(f"the gateway does not list the model {quote(model)}.", hint=hint)


def tools_of(options: ChatOptions, questions: Questions | None = None) -> Iterator[AnyTool]:
    """Without --workspace, shell and write tools use the current folder. questions: None if servers cannot ask the user."""
    if options.workspace is not None or options.allow_shell or options.allow_write:
        from ...tools.workspace import workspace

        allow = (*_READ_TOOLS, *(("write", "edit") if options.allow_write else ()))
        yield workspace(options.workspace or Path(), allow=allow, shell=options.allow_shell)
    if options.mcp:
        from ...tools.mcp import MCP

        # Warnings are shown as notes; a logger without a handler would write them over the terminal.
        logging.getLogger("toolwire.tools.mcp").addHandler(logging.NullHandler())
        taken: dict[str, int] = {}
        for command in options.mcp:
            name = MCP(command).name
            count = taken[name] = taken.get(name, 0) + 1
            name = name if count == 1 else f"{name}_{count}"
            yield MCP(command, name=name, elicit=questions.elicit_for(name) if questions is not None else None)


def list_names(tools: Sequence[Runnable]) -> str:
    """The first names, and the number of the others."""
    names = [runnable.tool.name for runnable in tools]
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


async def first_model(config: Config) -> str:
    """The first chat model of the default back end, else of the others; the demo model only if there are no others.

    Raises UpstreamError, with the reason of each back end, if none lists a model.
    """
    backends = [backend for backend in config.backends if backend.kind != "demo"]
    backends.sort(key=lambda backend: backend.name != config.server.default)
    gateway = await gateway_of(config)
    listings = await asyncio.gather(*(_listing(backend, gateway) for backend in backends))
    for listing in listings:
        if found := first_chat_model(listing.models):
            return f"{listing.backend}/{found}"
    if listings:
        raise _no_model(listings)
    return DEMO


def first_model_at(url: str, key: str) -> str:
    """The first chat model of a running gateway; the demo model if it has no other. Raises ConfigError if none can be chosen."""
    address = url.rstrip("/").removesuffix("/v1")
    found = look(address, key)
    if (fault := found.fault(address)) is not None:
        raise fault
    return first_chat_model([model for model in found.models if model != DEMO]) or DEMO


async def _listing(backend: BackendConfig, gateway: GatewayStatus) -> ModelListing:
    """The models of the file, without a request, else those that the back end lists."""
    if backend.models and not backend.missing:
        return ModelListing(backend=backend.name, models=backend.models)
    return await ask(backend, gateway=gateway)


def _no_model(listings: Sequence[ModelListing]) -> UpstreamError:
    reasons = (
        f"{listing.backend}: {listing.error.sentence() if listing.error else 'it lists no models.'}"
        for listing in listings
    )
    return UpstreamError(
        f"no back end has a model that answers now. {plain(' '.join(reasons), 1500)}",
        hint=f"`toolwire doctor` checks each of them. --model selects a model, such as {DEMO}, which only shows how tools work.",
    )


async def model_names(config: Config) -> list[str]:
    """Aliases, and `backend/model` of each back end that lists its models."""
    listings = await asyncio.gather(*(ask(backend) for backend in config.backends))
    return [
        *config.aliases,
        *config.groups,
        *(f"{listing.backend}/{model}" for listing in listings for model in listing.models),
    ]


async def check_model(config: Config, model: str) -> None:
    """Raises BadRequest, with similar names, if no back end has this model."""
    router = router_for(config)
    if router.route_or_none(model) is None:
        for listing in await asyncio.gather(*(ask(backend) for backend in config.backends)):
            router.note_models(listing.backend, listing.models)
        router.resolve(model)


class ChatCounts:
    """Stores the counts of a chat where `toolwire stats` finds them.

    telemetry is for the agent. problem: why nothing was stored, if that is worth a note.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.telemetry = HourlyCounts()
        self.problem = ""

    @asynccontextmanager
    async def record(self) -> AsyncIterator[None]:
        """The store opens in the background: nothing waits for it before the end."""
        if self._config.store.kind != "sqlite":
            yield
            return
        is_over = asyncio.Event()
        recording = asyncio.create_task(self._record(is_over))
        try:
            yield
        finally:
            is_over.set()
            await recording

    async def _record(self, is_over: asyncio.Event) -> None:
        try:
            store = await asyncio.to_thread(_open_store, self._config)
        except ConfigError as error:
            self.problem = f"this chat is not counted: {error.sentence()}"
            return
        if store is None:
            return
        # In a thread: the server's modules take a while to import.
        recorder = (await asyncio.to_thread(_recorder_class))(store, self.telemetry, self._note)
        recorder.start()
        try:
            await is_over.wait()
        finally:
            await recorder.stop()
            await store.close()

    def _note(self, error: InternalError, request_id: str) -> None:
        self.problem = f"{error.sentence()} {error.__cause__!r}"


def _open_store(config: Config) -> Store | None:
    """None if the default file cannot be written. Raises ConfigError if a configured one cannot."""
    store = config.store
    opened = open_store(
        kind=store.kind,
        path=store.path,
        default_path=default_store_path(),
        max_age_days=store.max_age_days,
        max_mb=store.max_mb,
    )
    return None if isinstance(opened.store, MemoryStore) else opened.store


def _recorder_class() -> type[Recorder]:
    from ...server.stats_writer import Recorder

    return Recorder
