"""Small data of the U task, files of replies, and a model that says what a test tells it to."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gen_eval.mllm import Capabilities, ChatClient, Identity, Reply, Text
from gen_eval.mllm.entry import entry_of

OPTIONS = {"A": "Turn left.", "B": "Turn right.", "C": "Go straight.", "D": None}
GROUPS = (("Common Sense", "Space: Relationship"), ("Common Sense", "Time: Order"), ("Embodied Reasoning", "AV"))


def question(number, **changed):
    """A row as the benchmark publishes it; two questions share a clip."""
    category, subcategory = GROUPS[number % len(GROUPS)]
    return {
        "question": f"Which way does the robot go ({number})?",
        "index2ans": OPTIONS,
        "answer": "ABC"[number % 3],
        "video_path": f"videos/set/{number // 2:03d}.mp4",
        "category": category,
        "subcategory": subcategory,
        **changed,
    }


@pytest.fixture(name="question")
def question_fixture():
    return question


@pytest.fixture
def published_folder(tmp_path, make_clip):
    """`published_folder(count, clips=...)`: the published layout with so many questions; only `clips` have a file."""
    from gen_eval.media import write_clip

    def make(count=6, clips=None):
        root = tmp_path / "pai_u"
        (root / "data").mkdir(parents=True)
        folder = root / "videos" / "set"
        folder.mkdir(parents=True)
        pq.write_table(
            pa.Table.from_pylist([question(number) for number in range(count)]), root / "data" / "test-0.parquet"
        )
        for clip in range((count + 1) // 2) if clips is None else clips:
            write_clip(folder / f"{clip:03d}.mp4", make_clip(clip, frames=5), 8.0, lossless=True)
        return root

    return make


@pytest.fixture
def write_lines(tmp_path):
    """`write_lines(name, records)`: a file of JSON lines."""

    def write(name, records):
        path = tmp_path / name
        path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
        return path

    return write


class Scripted(ChatClient):
    """Says what `say(request)` gives: a text, a reply, or an error to raise; remembers what it was asked."""

    def __init__(self, entry, say):
        super().__init__(entry)
        self.say, self.asked = say, []

    @property
    def capabilities(self):
        return Capabilities(honours=frozenset({"temperature", "max_tokens", "seed", "choices"}), video_form=True)

    async def identity(self):
        return Identity("scripted", "1", "test")

    async def reply(self, request):
        self.asked.append(request)
        said = self.say(request)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Reply) else Reply(said, model="scripted", form="images")


@pytest.fixture
def scripted(monkeypatch):
    """`scripted(say, **further)`: the model that runs ask; `further` are other models by name."""

    def install(say, **further):
        from api.services.understanding import running

        talkers = {"vlm": say, **further}
        clients = {}

        def load(name, **_):
            return entry_of(name, {"id": name, "backend": "http"})

        def open_client(entry, **_):
            clients.setdefault(entry.name, []).append(Scripted(entry, talkers[entry.name]))
            return clients[entry.name][-1]

        monkeypatch.setattr(running, "load_model", load)
        monkeypatch.setattr(running, "open_client", open_client)
        return clients

    return install


def words(request):
    """All text of a request."""
    return "\n".join(part.text for part in request.parts if isinstance(part, Text))


@pytest.fixture(name="words")
def words_fixture():
    return words
