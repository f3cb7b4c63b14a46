"""The code blocks of a Markdown page, and what the comment above a block says about running it.

<!-- not run: REASON -->    its commands are only parsed: options and files must exist
<!-- prints: TEXT -->       what the block prints contains the text
<!-- leaves: FILE ... -->   these files are there afterwards
<!-- served: RUN -->        while `nodepiece serve RUN --writable` runs
<!-- varies -->             a console block whose output is not compared: numbers of a training
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(
    r"(?P<comments>(?:^ *<!--[^\n]*-->\n+)*)"
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"<!-- *([a-z ]+?)(?:: *(.*?))? *-->")


@dataclass(frozen=True)
class Block:
    page: str
    line: int  # of its first line of code
    language: str
    code: str
    directives: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order, with the directives of the comments right above them."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for found in BLOCK.finditer(text):
        indent = len(found["indent"])
        code = "".join(line[indent:] or "\n" for line in found["code"].splitlines(keepends=True))
        line = text.count("\n", 0, found.start("code")) + 1
        directives = dict(COMMENT.findall(found["comments"]))
        blocks.append(Block(page.name, line, found["language"], code, directives))
    return blocks


def sessions(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a console block and what it prints: lines after `$ `."""
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = command[:-1] + more.removeprefix("> ")
        yield command, shown


def nodepiece_commands(code: str) -> Iterator[list[str]]:
    """The arguments of every command line of nodepiece in a shell block."""
    joined = re.sub(r"\\\n", " ", code)
    joined = re.sub(r"<<'?(\w+)'?.*?^\1$", "", joined, flags=re.MULTILINE | re.DOTALL)
    for line in joined.splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        for start, word in enumerate(words):
            if word == "nodepiece" and (
                start == 0 or words[start - 1] in ("-m", "|", "&&", "time")
            ):
                stops = ("|", "&&", "&", ">", "<", ";", ">>", "2>&1")
                rest = words[start + 1 :]
                yield rest[: next((i for i, w in enumerate(rest) if w in stops), len(rest))]
