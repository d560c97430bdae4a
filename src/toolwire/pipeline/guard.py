"""Which checks the calls of one answer pass: counted, watched or repaired while they stream, or held until they are valid."""

from __future__ import annotations

from msgspec.structs import replace

from ..backends.base import Backend
from ..calls.schemas import Schemas
from ..calls.streamed_calls import CallRepairer
from ..calls.tools.encoded_arguments import ArgumentDecoder
from ..calls.turn import CallCounter, CallMonitor, CallObserver, MakeSplitter, has_tools
from ..calls.validation import CallValidator, OfferedTools, ToolOffer
from ..calls.written.request import CallDemand, call_demand, reminder
from ..calls.written.splitter import CallSplitter, SplitterPolicy
from ..config.policy import Corrections, Policy
from ..ids import new_id
from .correction import CorrectingBackend
from .grammar import GrammarMemory, GrammarSupport
from .job import Job
from .simulation import ScanningBackend, SimulatingBackend


def guarded(
    job: Job, schemas: Schemas, decoder: ArgumentDecoder | None, grammars: GrammarMemory | None = None
) -> tuple[Backend, CallObserver | None]:
    """The back end to open, and the observer of its calls; None where the back end is wrapped in one that holds and corrects them."""
    backend, request = job.backend, job.request
    if job.guard == "off":
        return backend, CallCounter(job.record.tally)
    state = request.state
    is_simulated = job.policy.tools == "simulate"
    wanted = CallDemand() if not is_simulated and _has_choice(job) else call_demand(request)
    if wanted.names is None:
        is_all = state is None or not (state.is_leaning or state.is_upstreams)
        offer = ToolOffer(job.offered, job.names, is_all=is_all)
    else:  # the model knows all tools, and may call some of them
        allowed = [tool for tool in job.offered if tool.name in wanted.names]
        offer = ToolOffer(allowed, barred=frozenset(tool.name for tool in job.offered) - wanted.names)
    checking = CallValidator(offer, schemas, job.record.tally, decoder)
    may_call = has_tools(request)
    is_enforced = is_simulated and any(tool.strict for tool in job.offered)  # the back end cannot enforce a strict tool
    is_watched = job.guard == "check" and not is_enforced
    if not may_call or is_watched or job.is_queued_upstream:
        return backend, CallMonitor(checking, has_tools=may_call)
    if job.guard == "repair" and not (is_enforced or wanted.must_call or _may_withdraw(job.policy.terms)):
        return backend, CallRepairer(checking, has_tools=may_call)
    terms = job.terms
    if wanted.must_call:
        is_reminded = not is_simulated and backend.profile.is_unforced(job.model) and not job.is_stored_upstream
        text = reminder(wanted, is_native=not is_simulated)
        terms = replace(terms, reminder=text, reminders=int(is_reminded))
    backend = scanned(job, schemas)
    grammar = None if grammars is None else grammars.support(job.backend, job.model, job.policy.grammar)
    return CorrectingBackend(backend, checking, terms, grammar), None


def scanned(job: Job, schemas: Schemas) -> Backend:
    """The back end of the job, wrapped in one that finds the calls in its text where its models write them there."""
    return ScanningBackend(job.backend, schemas, _manner(job.policy, job.guard)) if _writes_calls(job) else job.backend


def _has_choice(job: Job) -> bool:
    """Whether the back end enforces the client's choice among the tools."""
    profile, choice = job.backend.profile, job.request.tool_choice
    if choice is None or choice.mode in ("auto", "none") or not profile.has_tool_choice:
        return profile.has_tool_choice
    return not profile.is_unforced(job.model) and not (choice.mode == "allowed" and profile.is_bound(job.model))


def _may_withdraw(terms: Corrections) -> bool:
    """Whether an invalid call becomes something else, so that none of it can be sent before."""
    return terms.policy != "pass" or terms.unknown not in ("correct", "emit")


def text_splitter(job: Job, schemas: Schemas) -> MakeSplitter | None:
    """Makes what takes calls out of the text, by the index of the first text part; None where the back end's models write none."""
    if not _writes_calls(job):
        return None

    def make(first: int) -> CallSplitter:
        offer = ToolOffer(job.request.tools)
        tools = OfferedTools(offer, schemas, is_instructed=False)
        return CallSplitter(tools, offer, new_id, _manner(job.policy, job.guard), first)

    return make


def _writes_calls(job: Job) -> bool:
    if job.policy.tools != "auto" or job.guard == "off" or not job.backend.dialect:
        return False
    return job.backend.profile.writes_calls and bool(job.offered) and has_tools(job.request)


def simulated(
    backend: Backend, policy: Policy, model: str, schemas: Schemas, grammar: GrammarSupport | None = None
) -> Backend:
    """The back end, or one that describes the tools to it as text."""
    if policy.tools != "simulate":
        return backend
    return SimulatingBackend(backend, schemas, _manner(policy, policy.guard_for(model)), grammar)


def _manner(policy: Policy, guard: str) -> SplitterPolicy:
    return SplitterPolicy(
        is_held=guard in ("repair", "retry"),
        may_hold=guard != "off",
        policy=policy.terms.policy,
        unknown=policy.terms.unknown,
    )
