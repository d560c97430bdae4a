// The labels of repairs in plain words. Labels that are not here are shown as they are.

const ARGUMENTS = {
  "syntax.bare": "text had no quotes",
  "syntax.braces": "a brace was written twice",
  "syntax.bracket": "a bracket was closed by the wrong one",
  "syntax.closed": "a closing bracket was missing",
  "syntax.closers": "there were too many closing brackets",
  "syntax.colon": "a colon was another character",
  "syntax.comma": "there was one comma too many",
  "syntax.comment": "there was a comment",
  "syntax.control": "text had raw line breaks or control characters",
  "syntax.escape": "an escape was not valid",
  "syntax.inner_quotes": "quotes inside a text were not escaped",
  "syntax.key": "a key had no quotes",
  "syntax.literal": "a literal was not written as in JSON, such as True",
  "syntax.no_comma": "a comma was missing",
  "syntax.number": "a number was not written as in JSON",
  "syntax.quotes": "other quotes than those of JSON were used",
  "syntax.tuple": "a list had parentheses",
  typed: "a value had another type than the schema wants",
  whole_number: "a whole number was written with decimals",
  encoded: "a value was JSON inside a text",
  listed: "one value was given where the schema wants a list",
  unlisted: "a list of one was given where the schema wants a value",
  renamed: "a member had another name than in the schema",
  spelled: "a value of an enum was spelled differently",
  null: "an optional member was null or empty",
  wrapped: "the arguments were inside another object",
  twice: "the arguments were written twice",
  text: "there was text around the arguments",
  empty: "the arguments were empty",
};

const HISTORY = {
  missing_result: "a call had no result; a failed result was added",
  orphan_result: "a result had no call; it was sent as user text",
  duplicate_result: "a call had two results",
  duplicate_call: "a call was there twice",
  duplicate_id: "two calls had the same id, or none; the later one got a new id",
  duplicate_item: "an item was there twice",
  order: "results were not directly after their calls; they were moved",
  kind: "a result had another type than its call",
  arguments: "the arguments of an earlier call were no JSON object",
  empty: "empty texts were dropped",
  media: "images were moved out of a failed result",
  reasoning: "reasoning without its signature or its answer was dropped",
  thinking: "thinking was disabled for this request, because its signed beginning is missing",
  hosted: "incomplete blocks of a hosted tool were dropped",
  opening: "a first user message was added",
  ending: "the end of the history was adapted",
  form: "a message was in the form of another dialect or framework",
  role: "a role was not one of the dialect",
  item_id: "an item id was dropped, because the provider did not create it",
  tool_choice: "a tool choice without tools was dropped",
};

/** What a report says, in one sentence. */
export function reasonOf(report) {
  if (report.kind === "loss") return `${report.code ? `“${report.code}”` : "A part of the request"} could not be sent as it was: ${report.text}`;
  if (report.kind !== "repair") return report.text;
  if (report.where === "history") {
    const count = /(\d+) time/.exec(report.text)?.[1];
    const text = HISTORY[report.code];
    return text ? `In the history of the request ${text}${count > 1 ? ` (${count} times)` : ""}.` : report.text;
  }
  const labels = (report.code || "").split(/,\s*/).filter(Boolean);
  const known = labels.map((label) => ARGUMENTS[label] || ARGUMENTS[label.split(".")[0]]);
  if (!labels.length || known.includes(undefined)) return report.text;
  return `The arguments of ${report.tool || "a call"} were not valid: ${known.join("; ")}. Only one reading of them matches the schema, so the gateway wrote that one.`;
}
