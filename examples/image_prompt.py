"""Images and files in a conversation: they are part of the prompt, and of the saved conversation."""

import tempfile
from pathlib import Path

from toolwire import Agent, Conversation, Media, file, image

DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c63f8cff0bf1e0006000280a5d3a59a0000000049454e44ae426082"
)


def main() -> None:
    agent = Agent("demo/echo-tools")
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "dot.png"
        picture.write_bytes(DOT)
        notes = Path(folder) / "notes.md"
        notes.write_text("# Notes\nThe dot is red.\n")
        first = agent.run_sync(["What is in the picture?", image(picture), file(notes)])
        talk = Path(folder) / "talk.json"
        first.conversation.save(talk)
        second = agent.run_sync("And its colour?", Conversation.load(talk))
    media = [part for message in second.conversation.messages for part in message.parts if isinstance(part, Media)]
    print([(part.kind, part.mime, part.name) for part in media])
    print(len(second.conversation.messages), "messages")


if __name__ == "__main__":
    main()
