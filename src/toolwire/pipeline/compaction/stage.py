"""The request stage for compaction: summaries that come back are opened, edits applied, and a conversation compacted if the request
wants that or has grown beyond its threshold.

A back end that compacts by itself and speaks the client's dialect gets the request as it is; only summaries of the gateway are opened
for it. A summary that the gateway cannot read is refused, because the history that it replaces would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ...dialects.messages import compaction as in_messages
from ...dialects.responses import compaction_form as in_responses
from ...dialects.shared.compaction import CompactionForm, FoundSummary, found_summary, is_trigger
from ...errors import BadRequest
from ...ids import new_id
from ...types import Compaction, Message, Opaque, Part, Request, Tool
from ..job import Job
from .backend import CompactedBackend, MadeSummary, SummaryBackend
from .clearing import clear
from .history import last_turn, open_calls, split_instructions, tokens_of, waiting_message
from .summarizer import Summarizer
from .summary import Summary, SummarySeals, storable

FORMS: dict[str, CompactionForm] = {"messages": in_messages, "responses": in_responses}


class Compactor:
    """secrets: for the summaries that clients store, the current one first."""

    def __init__(self, secrets: Callable[[], Sequence[bytes]]) -> None:
        self._seals = SummarySeals(secrets)

    async def apply(self, job: Job) -> None:
        """Raises BadRequest for a summary that cannot be read, UpstreamError when the model makes none."""
        request, wanted = job.request, job.request.compaction
        form = FORMS.get(request.origin)
        if wanted is None or form is None:
            return
        is_native = job.is_own and job.backend.profile.has_compaction
        if wanted.has_items:
            opened = self._opened(request, form, job.owner, is_native=is_native)
            if opened is not request:
                request = opened
                job.change(request, "it contains a summary of the gateway")
        if is_native:
            return
        if wanted.edits and not job.is_own:
            cleared = clear(request.messages, wanted.edits)
            request = replace(request, messages=cleared.messages)
            job.losses += cleared.losses
        if wanted.is_now or wanted.threshold is not None or not job.is_own:
            request = _without_members(request, form, keeps_edits=job.is_own)
            job.change(request, "the gateway compacts conversations for this back end")
        if wanted.is_now or (wanted.threshold is not None and tokens_of(request.messages) > wanted.threshold):
            await self._compact(job, form, wanted)

    def _opened(self, request: Request, form: CompactionForm, owner: str, *, is_native: bool) -> Request:
        """With summaries as messages; the same request where all of them stay as they are."""
        kept: list[Message] = []
        tools: list[Tool] = []
        is_changed = False
        heads = sum(message.is_head for message in request.messages)
        name = "input" if request.origin == "responses" else "messages"
        for place, message in enumerate(request.messages, -heads):
            parts: list[Part] = []
            for part in message.parts:
                found = found_summary(part)
                if found is None or (is_native and not found.is_ours):
                    parts.append(part)
                    continue
                is_changed = True
                summary = self._read(found, owner, f"{name}[{place}]")
                if summary is None:
                    continue
                if summary.replaces_past or form.replaces_past:
                    kept, parts = list(split_instructions(kept)[0]), []
                if parts:
                    kept.append(message.with_parts(tuple(parts)))
                    parts = []
                kept += summary.messages()
                tools += summary.tools
            if len(parts) == len(message.parts):
                kept.append(message)
            elif parts:
                kept.append(message.with_parts(tuple(parts)))
        if not is_changed:
            return request
        return _with_tools(replace(request, messages=tuple(kept)), tools)

    def _read(self, found: FoundSummary, owner: str, where: str) -> Summary | None:
        """None for a compaction that failed. Raises BadRequest."""
        if found.is_void:
            return None
        if found.is_ours:
            if (summary := self._seals.open(found.sealed, owner)) is not None:
                return summary
            raise BadRequest(
                "this gateway cannot open the compaction item: it was altered, belongs to another key, or was sealed with "
                "a secret that this gateway does not have.",
                where=where,
                code="compaction_unreadable",
                hint="Send the conversation without it, with the key that made it, or add the old secret to [server] secrets.",
            )
        if found.text:
            return Summary(text=found.text)
        raise BadRequest(
            "only the provider that made this compaction item can read it, and this back end is another one.",
            where=where,
            code="compaction_unreadable",
            hint="Continue with a model of that provider, or send the conversation without the item.",
        )

    async def _compact(self, job: Job, form: CompactionForm, wanted: Compaction) -> None:
        request = job.request
        heads, conversation = split_instructions(request.messages)
        if not conversation:
            raise BadRequest("there is no conversation to compact; expected at least one message.")
        if wanted.is_now and form.refuses_open_calls and open_calls(conversation):
            raise BadRequest(
                "a tool call has no result yet; expected a conversation without open calls.", where="messages"
            )
        summarizer = Summarizer(job.backend, replace(request, model=job.model), wanted.instructions)
        text = await summarizer.summarize(conversation)
        is_alone = wanted.is_now or wanted.pauses
        tail = waiting_message(conversation) if wanted.is_now else last_turn(conversation)
        summary = Summary(
            model=request.model,
            text=text,
            replaces_past=not wanted.is_now,
            tail=tuple(map(storable, tail)),
            tools=form.found_tools(conversation),
        )
        part = form.part(text, self._seals.seal(summary, job.owner), new_id)
        retained: list[Opaque] = form.retained(conversation, new_id) if wanted.is_endpoint else []
        made = MadeSummary(
            parts=[*retained, part],
            notes=form.notes(part) if wanted.is_now and not wanted.is_endpoint else (),
            usage=summarizer.usage,
            losses=tuple(summarizer.losses),
        )
        job.record.history["compacted"] += 1
        job.change(replace(request, messages=(*heads, *summary.messages())), "the conversation was compacted")
        job.backend = (
            SummaryBackend(job.backend, made, form.reason) if is_alone else CompactedBackend(job.backend, made)
        )
        job.recall, job.is_own = None, False


def _with_tools(request: Request, tools: list[Tool]) -> Request:
    """Tools that the client offers itself take precedence."""
    known = {(tool.namespace, tool.name) for tool in request.tools}
    more = {(tool.namespace, tool.name): tool for tool in tools if (tool.namespace, tool.name) not in known}
    return replace(request, tools=(*request.tools, *more.values()), has_new_tools=True) if more else request


def _without_members(request: Request, form: CompactionForm, *, keeps_edits: bool) -> Request:
    """Without what is about compaction, in all its forms. keeps_edits: the back end may know those that only clear."""
    messages = request.messages
    if messages and any(map(is_trigger, messages[-1].parts)):
        messages = messages[:-1]
    edits = request.compaction.edits if request.compaction is not None and keeps_edits else ()
    source = {key: value for key, value in request.source.items() if key not in form.members}
    if edits:
        source["context_management"] = form.management(edits)
    if isinstance(source.get("input"), str):
        source["input"] = []  # the messages are its input
    own = {key: value for key, value in request.extra.get(request.origin, {}).items() if key not in form.members}
    extra = {dialect: members for dialect, members in request.extra.items() if dialect != request.origin}
    return replace(request, messages=messages, source=source, extra={**extra, request.origin: own} if own else extra)
