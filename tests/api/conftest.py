"""Run folders made of rows, without decoding a video; runs that are killed on their way."""

import contextlib
import io
import json
import shutil
import subprocess
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from gen_eval.protocols import load_protocol
from gen_eval.records import Flag, Reason, Score, Status
from gen_eval.records.files import write_content_addressed
from gen_eval.records.run import MANIFEST_FORMAT, RunFolder

METRICS = {"blur_ssim": ("corrected", "reference"), "edge_f1": ("corrected", "reference")}


def jpeg(shade):
    buffer = io.BytesIO()
    Image.new("RGB", (16, 12), (shade % 256, 40, 200)).save(buffer, format="JPEG")
    return buffer.getvalue()


def parquet(rows):
    """Rows (member, metric, protocol, curve, frame, value) as the file of per-frame values."""
    names = ("member", "metric", "protocol", "curve", "frame", "value")
    types = (pa.string(), pa.string(), pa.string(), pa.string(), pa.int32(), pa.float64())
    schema = pa.schema(list(zip(names, types, strict=True)))
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema), buffer)
    return buffer.getvalue()


def plain_value(sample, member, metric, protocol):
    """Some number in 0.5..1 that depends on all of its place."""
    text = f"{sample}/{member}/{metric}/{protocol}"
    return 0.5 + sum(place * ord(letter) for place, letter in enumerate(text, start=1)) % 499 / 1000


class Maker:
    """Writes run folders; every argument of :meth:`__call__` has a plain default."""

    def __init__(self, root):
        self.root = root

    def manifest(self, samples, model="alpha", metrics=None, protocol="corrected", **other):
        metrics = METRICS if metrics is None else metrics
        entries = {
            metric: {"version": 1, "protocols": {name: load_protocol(metric, name).digest for name in protocols}}
            for metric, protocols in metrics.items()
        }
        return {
            "format": MANIFEST_FORMAT,
            "gen_eval": "0.1",
            "track": "control",
            "model": model,
            "layout": "pai-c",
            "metrics": entries,
            "protocol": protocol,
            "preset": {"name": "121-frames", "limit": 121},
            "chunk": 8,
            "environment": {"numpy": "2.4", "av": "18.1"},
            "seeds": None,
            "domains": None,
            "limit": None,
            "samples": samples,
            "unknown_videos": [],
            "not_asked_videos": [],
            "rejected": [],
            **other,
        }

    def sample(self, name, members=("0", "1"), domain="robot", model="alpha", prompt="p", reference="r", **other):
        return {
            "id": name,
            "domain": domain,
            "prompt": prompt,
            "reference": {"path": f"videos/{name}.mp4", "sha256": f"{reference}-{name}"},
            "depth": None,
            "masks": None,
            "members": [
                {"id": one, "path": f"{name}__{one}.mp4", "sha256": f"{model}-{name}-{one}", "problem": None}
                for one in members
            ],
            **other,
        }

    def row(self, model, sample, member, metric, protocol, value, **fields):
        status = Status.OK if value is not None else fields["reason"].status
        return Score(
            model,
            sample,
            member,
            metric,
            protocol,
            value,
            status,
            parameters=load_protocol(metric, protocol).digest,
            inputs="i",
            **fields,
        )

    def missing(self, row, reason=Reason.MISSING_VIDEO, message="no video was found"):
        """``row`` without its value."""
        return replace(
            row,
            value=None,
            status=reason.status,
            reason=reason,
            values={},
            detail={"message": message},
            curve=None,
            frames={},
        )

    def __call__(self, name, manifest, value=plain_value, change=None, shard=None, pictures=True, store=None, fps=24.0):
        """A run folder; ``change`` maps each row to the one that is written, or to ``None``."""
        path = self.root / name
        with RunFolder.create(path, manifest, store=store) as run:
            run.mark_shard(shard)
            samples = manifest["samples"]
            for sample in samples if shard is None else samples[shard[0] - 1 :: shard[1]]:
                rows = list(self._group(run, manifest, sample, value, pictures, fps))
                changed = [row if change is None else change(row) for row in rows]
                run.write([row for row in changed if row is not None])
        return path

    def _group(self, run, manifest, sample, value, pictures, fps):
        pairs = [(metric, name) for metric, entry in manifest["metrics"].items() for name in entry["protocols"]]
        places = [(member["id"], *pair) for member in sample["members"] for pair in pairs]
        numbers = {place: value(sample["id"], *place) for place in places}
        curve = None
        if pictures:
            content = parquet(
                (*place, place[1], frame, None if frame == 3 else min(1.0, number + frame / 100))
                for place, number in numbers.items()
                for frame in range(6)
            )
            curve = write_content_addressed(run.curves, content, ".parquet")
        for shade, (place, number) in enumerate(numbers.items()):
            frames = {}
            if pictures:
                roles = {"thumbnail": 0, "worst": 15 * shade + 20, "worst_reference": 150}
                frames = {role: write_content_addressed(run.frames, jpeg(tone), ".jpg") for role, tone in roles.items()}
            yield self.row(
                manifest["model"],
                sample["id"],
                *place,
                number,
                values={"precision": number / 2, "recall": None} if place[1] == "edge_f1" else {},
                flags=(Flag.SHORT_CLIP,) if place[0] == "1" else (),
                detail={
                    "video": {"fps": fps, "decoded_frames": 6, "declared_frames": 7},
                    "covered": 0.75,
                    "worst_frame": 2,
                },
                curve=curve,
                frames=frames,
            )


@pytest.fixture
def maker(tmp_path):
    return Maker(tmp_path)


@pytest.fixture
def plain_run(maker):
    """Four samples in two domains, one with a single member, two metrics, two protocols: all values are there."""
    samples = [
        maker.sample("s1"),
        maker.sample("s2", members=("0",)),
        maker.sample("s3", domain="av"),
        maker.sample("s4", domain=None),
    ]
    return maker("plain", maker.manifest(samples))


def groups_done(run):
    """How many groups a run has written, by its log; -1 before it begins to score."""
    log = run / "run.log.jsonl"
    if not log.is_file():
        return -1
    whole_lines = log.read_bytes().split(b"\n")[:-1]
    return sum(json.loads(line)["event"] == "group" for line in whole_lines)


def rows_in(path):
    if not (path / "manifest.json").is_file():
        return 0
    with RunFolder(path) as run:
        return run.store.count(run.id)


@pytest.fixture
def killed(start):
    """`killed(arguments, run, rows, groups, delay)`: kill a command within its work; returns how many rows it left.

    The kill comes `delay` seconds after so many groups were written, however fast the machine is: none of the rows may
    be there when it is after no group, a part of the `rows` of the whole run otherwise. A run that had them all before
    the kill came is begun again and killed earlier.
    """

    def until(arguments, run, rows, groups=1, delay=0.0, **env):
        least = min(groups, 1)
        while True:
            process = start(*arguments, "--out", run, **env)
            while process.poll() is None and groups_done(run) < groups:
                time.sleep(0.005)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            process.kill()
            assert process.wait() <= 0, process.stderr.read()
            if least <= (left := rows_in(run)) < rows:
                return left
            shutil.rmtree(run)
            groups, delay = max(least, groups - 1), delay / 2

    return until
