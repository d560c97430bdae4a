"""The names of losses: what each one means, and whether it is harmless.

A loss is *adapted* if the other side gets the same meaning in another form, and *lost* if something did not arrive or may have changed the
answer. A name whose reports differ counts as lost. docs/losses.md lists the same names; a test compares both with the code.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..types import Loss

# `.*` at the end stands for any name, such as that of a member that the client sent.
ADAPTED = {
    "call.drifted": "the model wrote a call in another envelope than the prompt asks for; it was read",
    "call.flat": "the model wrote arguments beside the name of the tool; the call was read",
    "call.nameless": "the model wrote a number in place of a tool's name, and the arguments fit one tool only",
    "call.unclosed": "the end of a written call was missing; the call was read",
    "call.unterminated": "the end of a written block was missing; the call was read",
    "history": "the back end accepts no history, so it is sent as text in one message",
    "history.arguments": "arguments of a past call had another form, or could not be read; they are sent as valid JSON",
    "history.duplicate_call": "a past call was there twice",
    "history.duplicate_id": "two past calls had one id; one got another",
    "history.duplicate_item": "an item was there twice, or two had one id",
    "history.duplicate_result": "a call had two results; the second is sent as text",
    "history.empty": "an empty text, part or message was dropped or filled",
    "history.ending": "the end of the conversation had a form that back ends refuse",
    "history.form": "a message had the form of another program or dialect and was converted",
    "history.hosted": "half of a tool use of the provider is sent as text",
    "history.item_id": "an item had an id that the provider refuses; it is sent without",
    "history.kind": "a result was one of another kind of call and was converted",
    "history.last": "a turn needs a message of the user, which was added",
    "history.media": "images of a failed result were moved after it",
    "history.missing_result": "a past call has no result; the model gets one that says so",
    "history.opening": "a conversation must begin with a user message, which was added",
    "history.order": "messages, calls or results were put into the order that back ends require",
    "history.orphan_result": "a result has no call; it is sent as text",
    "history.role": "the dialect has no such role; the message is sent with another",
    "history.tool_choice": "a choice of tools was dropped, because the request has no tools",
    "loop": "the model repeats itself, and gets a note about it",
    "output.schema": "the schema of the output is stated in the prompt",
    "output.strict": "the back end enforces every schema strictly",
    "prefill": "the model is asked to continue its last message",
    "result.media": "images of a result were moved after the results",
    "results.shortened": "a large result is sent as its beginning; the model reads more on demand",
    "role.system": "an instruction is sent in another place or role",
    "schema": "a tool's schema was rewritten for the back end; arguments are checked against the original",
    "signature": "a call of another model is marked as unsigned",
    "tool.strict": "the gateway checks the arguments, because the back end does not",
    "tool_choice.allowed": "all tools stay in the list; the gateway checks the calls",
    "tools.diet": "tool definitions were shortened without changing what they accept",
    "tools.history": "the tools of past calls are declared, and none may be called",
    "tools.search": "the model gets the most relevant tools and finds the others",
    "usage": "the back end gave no token count; it is estimated",
    "usage.input": "the back end has not counted the input yet; it is estimated",
}
LOST = {
    "answer.*": "a member or part of the answer that the client's dialect does not have",
    "answer.imagined_result": "the model wrote a tool result itself; it was removed",
    "call.*": "a member of a call that the back end's dialect does not have",
    "call.arguments": "the model's arguments were no JSON; the back end reported that to the model",
    "call.correction": "the model was asked to correct a call",
    "call.declined": "the back end asked for something that the gateway declines",
    "call.integer": "a large whole number may lose its last digits",
    "call.invalid_arguments": "the arguments of a call do not fit the schema and could not be repaired",
    "call.name": "the model called a tool that does not exist; the back end reported that to the model",
    "call.number": "a number of a call was out of range",
    "call.own": "the back end ran one of its own tools",
    "call.parallel": "the model made more calls than the one that was asked for; the others were left out",
    "call.unasked": "the request offered no tools, and the model's call became text",
    "call.unknown_tool": "the model called a tool that was not offered",
    "call.unreadable": "the model wrote a call that cannot be read",
    "choices": "the back end sent several answers where one was requested",
    "compaction": "a message was cut for the summary, or the summary reached the token limit",
    "context_management": "the gateway has applied an edit of the context itself, or does not know it",
    "cursor.blob": "content that Cursor's server sent for storage was dropped",
    "cursor.empty": "Cursor's run ended without output, and was restarted with the whole conversation",
    "cursor.exec": "Cursor's model wanted something that no tool can do, and got a refusal",
    "cursor.notice": "Cursor's server sent a notice",
    "cursor.runaway": "Cursor's model reached a limit; the answer is the text there was",
    "cursor.stalled": "Cursor's run gave no answer to the results, and was restarted with the whole conversation",
    "cursor.summary": "Cursor's server shortened the conversation by itself",
    "cursor.turn_end": "Cursor's turn ended without its end event",
    "grammar": "the server refused or ignored the schema of simulated tools; they are only described in the prompt",
    "history.reasoning": "past reasoning without its text or its signature was dropped or is sent without signature",
    "history.thinking": "reasoning is off for this turn, because the open turn does not begin with it",
    "instruction.dropped": "an instruction after the results of a waiting run was dropped",
    "logprobs": "log probabilities do not fit the text, because calls are read from it",
    "max_tokens": "the token limit was raised to the least that the back end accepts, or dropped",
    "mcp.call": "a call of a mounted tool failed, and the model got the error",
    "mcp.server": "a mounted MCP server cannot be used, so its tools are missing",
    "mcp.tools": "tools of mounted MCP servers are missing",
    "media.*": "an image, sound or file, or a member of it, that the back end cannot take; a text says what it was",
    "message.*": "a member of a message that the back end's dialect does not have",
    "number": "a whole number beyond 2^53 in a past call may lose its last digits",
    "output.*": "a setting of the output that the back end does not have",
    "output.json": "the back end has no member for JSON output; most get the request in the prompt",
    "parallel_calls": "the back end cannot forbid several calls at once",
    "part": "a part of a message that the back end does not accept",
    "part.*": "a part of a message, or a member of it, that the back end's dialect does not have",
    "reasoning": "past reasoning cannot be sent to this back end",
    "reasoning.dropped": "the provider ignored past reasoning",
    "refused.*": "the back end refused the request; it was sent again without the part that it refused",
    "repeated_call": "the model repeated a call; it was not made again",
    "request.*": "a member of the request that the back end's dialect does not have",
    "result": "a result of the history that the back end cannot take",
    "result.*": "a member of a result that the back end's dialect does not have",
    "sampling.*": "a sampling parameter that the back end does not have or accepts only in a narrower range",
    "store": "the answer or its signatures could not be stored",
    "thinking": "the setting of reasoning has no effect on this back end or in this turn",
    "thinking.*": "a setting of reasoning that the back end does not have; the nearest one is used",
    "tool.*": "a member of a tool that the back end's dialect does not have",
    "tool.allowed_callers": "a tool that only programs may call is not offered",
    "tool.hosted": "a tool that the client's provider runs is not offered",
    "tool.integer": "large whole numbers of this tool may lose their last digits",
    "tool.number": "the back end takes no more tools; this one is not offered",
    "tool.skipped": "the back end does not offer this tool",
    "tool_choice": "the requested choice of tools is not available, or the model ignored it",
    "tools": "the back end reports that this model has no tool calling",
    "user": "the user's id is too long or has no member",
    "web_search": "a web search failed",
    "web_search.*": "an option of web search that the gateway's search does not have",
}


def is_adapted(feature: str) -> bool:
    """False for unknown names, such as that of a member which a back end refuses."""
    return feature in ADAPTED


def features(losses: Iterable[Loss], *, adapted: bool) -> list[str]:
    """The names of these losses that are harmless, or of those that are not; sorted, each once."""
    return sorted({loss.feature for loss in losses if is_adapted(loss.feature) == adapted})
