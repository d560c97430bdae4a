"""The workspace tools as a model is told them."""

from __future__ import annotations

from ...types import JsonObject, Tool

_PATH = "Path relative to the workspace root, or an absolute path inside it."
_FOLDER = "Folder to look in, relative to the workspace root. Default: the root itself."
_IGNORED = "Also look at what .gitignore files leave out. Default: false."


def _tool(name: str, description: str, required: list[str], **properties: JsonObject) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name=name, description=description, schema=schema)


def _text(description: str, **more: object) -> JsonObject:
    return {"type": "string", "description": description, **more}


def _whole(description: str, least: int) -> JsonObject:
    return {"type": "integer", "minimum": least, "description": description}


def _switch(description: str) -> JsonObject:
    return {"type": "boolean", "description": description}


READ = _tool(
    "read",
    "Read a file of the workspace. Text comes with a number and a tab before each line (they are not part of the file); long files "
    "come in pieces, and a note says with which offset to go on. PNG, JPEG, GIF and WebP images are shown as images.",
    ["path"],
    path=_text(_PATH),
    offset=_whole("Number of the first line to read, counted from 1. Default: 1.", 1),
    limit=_whole("How many lines to read. Default: as many as are allowed at once.", 1),
)

WRITE = _tool(
    "write",
    "Write a whole file of the workspace as UTF-8: make a new one, with the folders it needs, or replace one. To change a part of a "
    "file use edit.",
    ["path", "content"],
    path=_text(_PATH),
    content=_text("The whole content of the file."),
)

EDIT = _tool(
    "edit",
    "Replace a passage in a file of the workspace. old_text must be in the file exactly once, to the character, with its indentation "
    "and without line numbers; with replace_all every occurrence is replaced.",
    ["path", "old_text", "new_text"],
    path=_text(_PATH),
    old_text=_text("The passage to replace, exactly as it is in the file, with enough lines around it to be unique."),
    new_text=_text("What stands there instead; empty to delete the passage."),
    replace_all=_switch("Replace every occurrence. Default: false."),
)

LIST = _tool(
    "list",
    "Show a folder of the workspace as a tree, with sizes. Folders end with /, links are shown and not followed; what is ignored by "
    ".gitignore is named but not opened.",
    [],
    path=_text(_FOLDER),
    depth=_whole("How many levels to show. Default: 2.", 1),
    include_ignored=_switch("Also open folders that .gitignore files leave out. Default: false."),
)

GLOB = _tool(
    "glob",
    "Find files of the workspace by name, newest first. * and ? stand for characters of one name, ** for any folders, {a,b} for "
    'either. A pattern without a slash, such as "*.py", finds files at any depth; one with a slash, such as "src/**/*.py", is a path '
    "from the folder that is searched.",
    ["pattern"],
    pattern=_text('What to find, such as "*.py" or "src/**/test_*.{js,ts}".'),
    path=_text(_FOLDER),
    include_ignored=_switch(_IGNORED),
)

GREP = _tool(
    "grep",
    "Search the text files of the workspace, line by line, for a regular expression. Gives path:line:text for each line that matches "
    "and path-line-text for lines around it.",
    ["pattern"],
    pattern=_text(
        "Regular expression; write a backslash before characters such as . ( ) [ { that are meant literally."
    ),
    path=_text("File or folder to search, relative to the workspace root. Default: the root itself."),
    glob=_text('Search only files that this pattern finds, such as "*.ts" or "src/**/*.py".'),
    ignore_case=_switch("Take upper and lower case for the same. Default: false."),
    context=_whole("How many lines to show before and after each match, at most 20. Default: 0.", 0),
    mode=_text(
        'What to give: "lines", "files" (only the paths) or "count" (matching lines of each file). Default: "lines".',
        enum=["lines", "files", "count"],
    ),
    include_ignored=_switch(_IGNORED),
)

SHELL = _tool(
    "shell",
    "Run a command with bash in the workspace root, without input. Gives what it prints, and its exit code at the end. Each command "
    "begins anew: folder and variables are not kept, and what it leaves running in the background is ended.",
    ["command"],
    command=_text("What bash is to run, such as: python -m pytest -q tests/test_a.py"),
    timeout_seconds={
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Seconds after which the command is stopped. Default: 120.",
    },
)
