"""A benchmark made of scenes, in the public layouts of both tracks at once.

For the conditional track: ``videos/``, ``captions/``, ``canny/``, ``blur/``, ``depth_vids/``, ``sam2_vids/``,
``depth_npzs/``, ``masks/`` and ``metadata.csv``. For the generation track: the prompt file, ``condition_image/`` and
``vqa/``. Beside them ``questions.jsonl`` (yes/no, for a judge), ``understanding.jsonl`` (all questions, multiple
choice) and ``scenes.json`` (what each clip was rendered from). ``canny/`` holds the exact outlines of the objects.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gen_eval.data.signal_files import depth_archive, masks_document
from gen_eval.media import write_clip, write_image
from gen_eval.media.signal_pictures import gray
from gen_eval.protocols import load_protocol
from gen_eval.records.errors import InputError
from gen_eval.records.files import remove_leftovers, write_atomic
from gen_eval.scenes.clip import Question, SceneClip
from gen_eval.scenes.kinds import DOMAINS
from gen_eval.scenes.recipe import Recipe
from gen_eval.scenes.rendering import questions, scene
from gen_eval.scenes.signals import blurred, depth_picture, masks_picture

PROMPT_FILE = "cosmos_predict2_bench_full_info.json"
RECIPES_FILE = "scenes.json"
_FOLDERS = (
    "videos",
    "captions",
    "canny",
    "blur",
    "depth_vids",
    "sam2_vids",
    "depth_npzs",
    "masks",
    "condition_image",
    "vqa",
)


def write_benchmark(
    out: Path,
    *,
    kinds: Sequence[str] = tuple(DOMAINS),
    per_kind: int = 1,
    size: tuple[int, int] = (256, 448),
    fps: float = 24.0,
    frames: int = 49,
    seed: int = 0,
    lossless: bool = True,
    controls: bool = True,
    done: Callable[[str], None] | None = None,
) -> tuple[str, ...]:
    """Write scenes to ``out``, one clip in memory at a time; equal arguments give equal bytes.

    Started again with the same arguments it writes only the files that are missing; every file appears whole.

    Args:
        out: folder; made if it is not there.
        kinds: of scenes.
        per_kind: scenes of each, drawn from ``seed``, ``seed + 1``, ...
        size: height and width in pixels.
        fps: frames a second.
        frames: of each clip.
        seed: of the first scene of each kind.
        lossless: whether the reference videos hold the exact pixels; control signals are always compressed.
        controls: whether the control signals of the generators are written as videos too.
        done: called with the id of each finished scene.

    Returns:
        The ids, in the order in which they were written.

    Raises:
        InputError: ``out`` holds a benchmark that was made from other arguments.
        ValueError: an argument is outside its range.
    """
    if per_kind < 1:
        raise ValueError(f"per_kind must be at least 1, not {per_kind}")
    recipes = [Recipe(kind, seed + index, size, float(fps), frames) for kind in kinds for index in range(per_kind)]
    asked = {recipe.id: _questions(recipe) for recipe in recipes}  # refuses bad arguments before anything is written
    for folder in (".", *_FOLDERS):
        remove_leftovers(out / folder)
    _write_recipes(out / RECIPES_FILE, recipes, lossless)
    _write_indices(out, recipes, asked)
    for recipe in recipes:
        _write_texts(out, recipe, asked[recipe.id])
        _write_media(out, recipe, lossless=lossless, controls=controls)
        if done is not None:
            done(recipe.id)
    return tuple(asked)


def read_recipes(data: Path) -> dict[str, Recipe]:
    """Id -> recipe of the benchmark in ``data``; empty when it was not made from scenes.

    Raises:
        InputError: its ``scenes.json`` cannot be read.
    """
    path = data / RECIPES_FILE
    if not path.is_file():
        return {}
    try:
        scenes = json.loads(path.read_text(encoding="utf-8"))["scenes"]
        return {name: Recipe.from_json(recipe) for name, recipe in scenes.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read as a list of scenes: {error}; write the benchmark anew") from error


def _questions(recipe: Recipe) -> tuple[Question, ...]:
    return questions(recipe.kind, seed=recipe.seed, size=recipe.size, fps=recipe.fps, frames=recipe.frames)


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _lines(records: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def _write_recipes(path: Path, recipes: Sequence[Recipe], lossless: bool) -> None:
    document = {"lossless": lossless, "scenes": {recipe.id: recipe.to_json() for recipe in recipes}}
    content = _json(document)
    if path.exists() and path.read_bytes() != content:
        raise InputError(
            f"{path.parent} holds a benchmark of other scenes, another size or length; choose another folder, or "
            "delete that one"
        )
    if not path.exists():
        write_atomic(path, content)


def _write_indices(out: Path, recipes: Sequence[Recipe], asked: dict[str, tuple[Question, ...]]) -> None:
    prompts = [
        {
            "video_id": recipe.id,
            "prompt_en": scene(recipe.kind, recipe.seed).prompt,
            "image_name": f"{recipe.id}.png",
            "scene": recipe.to_json(),
        }
        for recipe in recipes
    ]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("id", "domain", "kind", "seed", "fps", "frames", "height", "width"))
    for recipe in recipes:
        writer.writerow((recipe.id, recipe.domain, recipe.kind, recipe.seed, recipe.fps, recipe.frames, *recipe.size))
    judged = [
        {"id": name, **_judge_record(question)}
        for name, found in asked.items()
        for question in found
        if question.is_yes_no
    ]
    chosen = [_understanding_record(name, question) for name, found in asked.items() for question in found]
    write_atomic(out / PROMPT_FILE, _json(prompts))
    write_atomic(out / "metadata.csv", table.getvalue().encode())
    write_atomic(out / "questions.jsonl", _lines(judged))
    write_atomic(out / "understanding.jsonl", _lines(chosen))


def _judge_record(question: Question) -> dict[str, Any]:
    return {
        "uid": question.uid,
        "question": question.question,
        "index2ans": dict(question.options),
        "answer": question.answer,
        "task": question.category,
    }


def _understanding_record(name: str, question: Question) -> dict[str, Any]:
    return {
        "id": f"{name}__{question.uid}",
        "task": "pai/u",
        "video": f"videos/{name}.mp4",
        "question": question.question,
        "options": dict(question.options),
        "answer": question.answer,
        "category": question.category.split(":", 1)[0],
        "subcategory": question.category,
    }


def _write_texts(out: Path, recipe: Recipe, asked: Sequence[Question]) -> None:
    drawn = scene(recipe.kind, recipe.seed)
    for number, caption in enumerate((drawn.prompt, *drawn.captions)):
        variant = f"_caption{number}" if number else ""
        _once(out / "captions" / f"{recipe.id}{variant}.json", _json({"caption": caption}))
    judged = [_judge_record(question) for question in asked if question.is_yes_no]
    _once(out / "vqa" / f"{recipe.id}.json", _json(judged))


def _once(path: Path, content: bytes) -> None:
    if not path.exists():
        write_atomic(path, content)


def _write_media(out: Path, recipe: Recipe, *, lossless: bool, controls: bool) -> None:
    """The files of one clip that are not there yet; the clip is rendered only if there are such."""
    videos: dict[str, Callable[[SceneClip], NDArray[np.uint8]]] = {"videos": lambda clip: clip.frames}
    if controls:
        videos |= {
            "canny": lambda clip: gray(clip.edges.astype(np.uint8) * 255),
            "blur": _blur,
            "depth_vids": lambda clip: depth_picture(clip.depth),
            "sam2_vids": lambda clip: masks_picture(clip.masks),
        }
    files: dict[Path, Callable[[SceneClip], bytes]] = {
        out / "depth_npzs" / f"{recipe.id}.npz": lambda clip: depth_archive(clip.depth),
        out / "masks" / f"{recipe.id}.masks.json": lambda clip: masks_document(clip.masks),
    }
    image = out / "condition_image" / f"{recipe.id}.png"
    clips = {out / folder / f"{recipe.id}.mp4": (folder, picture) for folder, picture in videos.items()}
    if all(path.exists() for path in (*files, *clips, image)):
        return
    clip = recipe.render()
    if not image.exists():
        image.parent.mkdir(parents=True, exist_ok=True)
        write_image(image, clip.frames[0])
    for path, content in files.items():
        if not path.exists():
            write_atomic(path, content(clip))
    for path, (folder, picture) in clips.items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_clip(path, picture(clip), clip.fps, lossless=lossless and folder == "videos")


def _blur(clip: SceneClip) -> NDArray[np.uint8]:
    measure = load_protocol("blur_ssim", "corrected").measure
    return blurred(clip.frames, measure["diameter"], measure["sigma_color"], measure["sigma_space"])
