"""What of an entry holds behind a backend: the form that it takes, the context that it has."""

import pytest

from gen_eval.mllm import Capabilities, ChatClient
from gen_eval.mllm.entry import entry_of
from gen_eval.mllm.showing import show
from gen_eval.mllm.taking import entry_as_taken
from gen_eval.protocols.shown import load_shown


class Backend(ChatClient):
    """Takes what it is told to take."""

    def __init__(self, able, server=None, **entry):
        sees = {"form": "video", "patch_factor": 28, "frames_per_token": 2}
        super().__init__(entry_of("vlm", {"id": "vlm", "sees": sees, **entry}))
        self.able, self.context = able, server

    @property
    def capabilities(self):
        return Capabilities(frozenset(), **self.able)

    async def identity(self):
        raise NotImplementedError

    async def reply(self, request):
        raise NotImplementedError


def test_frames_that_cannot_be_a_video_are_counted_and_sent_as_pictures(tmp_path, make_clip):
    from gen_eval.media import write_clip

    write_clip(tmp_path / "clip.mp4", make_clip(0, frames=9), 2.0)
    preset = load_shown("16-uniform").with_frames(3)
    video, images = (entry_as_taken(Backend({"video_form": able})) for able in (True, False))
    as_video, as_images = (show(tmp_path / "clip.mp4", preset, entry) for entry in (video, images))
    assert (as_video.part.form, len(as_video.part.pictures)) == ("video", 4)  # the last one fills the pair
    assert (as_images.part.form, len(as_images.part.pictures)) == ("images", 3)
    assert as_images.facts["tokens"] == 3 * as_video.facts["tokens"] // 2


def test_a_file_that_cannot_be_handed_over_becomes_frames():
    sees = {"form": "file"}
    found = entry_as_taken(Backend({"video_form": True}, sees=sees)).sees.form
    assert (found, entry_as_taken(Backend({}, sees=sees)).sees.form) == ("video", "images")
    assert entry_as_taken(Backend({"video_file": True}, sees=sees)).sees.form == "file"


@pytest.mark.parametrize(
    ("own", "server", "left"), [(None, None, None), (8192, None, 8192), (None, 4096, 4096), (262144, 8192, 8192)]
)
def test_the_smaller_context_counts(own, server, left):
    assert entry_as_taken(Backend({}, server, context=own)).context == left


def test_no_more_pictures_than_the_backend_takes():
    assert entry_as_taken(Backend({"most_pictures": 8})).sees.most_frames == 8
