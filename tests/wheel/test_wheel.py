"""The wheel, built and installed in a clean environment, runs the demonstration from outside the checkout."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.glob("gen_eval-*.whl")
    return path


def test_the_wheel_holds_what_runs_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"gen_eval", "control_metrics", "judge", "understanding", "api"}
    for needed in (
        "gen_eval/configs/protocols/control.yaml",
        "gen_eval/configs/presets/frames.yaml",
        "gen_eval/records/migrations/versions/0001_runs_and_scores.py",
        "gen_eval/py.typed",
    ):
        assert needed in names
    assert any(name.endswith(".html") or name.endswith(".j2") for name in names), "templates of the report"
    assert any(name.endswith("licenses/LICENSE") for name in names)


SMALL = "import api.services.demonstration as demo; demo._SIZE, demo._FRAMES = (72, 128), 9"
"""Pictures of a seventh of the work; everything else is what `gen-eval demo` does."""


@pytest.mark.wheel
@pytest.mark.xdist_group("wheel")
@pytest.mark.parametrize("size", [SMALL, pytest.param("pass", marks=pytest.mark.soak)], ids=["small", "whole"])
def test_the_demo_runs_from_the_wheel_alone(wheel, tmp_path, size):
    home = tmp_path / "venv"
    venv.create(home)  # what installs into it is the pip of this environment
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-compile", wheel], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    absent = subprocess.run([python, "-c", "import torch"], capture_output=True, text=True)
    assert "ModuleNotFoundError" in absent.stderr, "the base install has no torch"

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    demo = subprocess.run(
        [python, "-P", "-c", f"{size}\nfrom api.cli import main\nmain()", "demo", "--json"],
        capture_output=True,
        text=True,
        cwd=elsewhere,
        env=environment,
        timeout=900,
    )
    assert demo.returncode == 0, demo.stderr
    document = json.loads(demo.stdout)
    assert len(document["runs"]) == 9
    judged = {model: document["runs"][f"{model}-domain"] for model in ("lawful", "jumpy")}
    scores = {model: run["aggregate"]["domain_score"]["corrected"]["value"] for model, run in judged.items()}
    assert scores["lawful"] > scores["jumpy"]
    assert "simulated" in judged["lawful"]["domain"]["judge"]["title"]
    lawful, jumpy = (document["runs"][f"{model}-control"] for model in ("lawful", "jumpy"))
    blur = [run["aggregate"]["blur_ssim"]["corrected"] for run in (lawful, jumpy)]
    assert blur[0]["value"] > blur[1]["value"]
    assert blur[1]["members"]["n"] < blur[1]["members"]["N"], "one video was lost on purpose"
    ratings = document["people"]["ratings"]["trackers"]["overall"]["ratings"]
    assert max(ratings, key=ratings.get) == "lawful"
    assert document["people"]["pairs"]["domain"]["n"] == 3
    assert (elsewhere / document["report"]).is_file()
    doctor = subprocess.run(
        [home / "bin" / "gen-eval", "doctor", "--json"], capture_output=True, text=True, cwd=elsewhere, env=environment
    )
    assert doctor.returncode == 0, doctor.stderr
    assert "pip install 'gen-eval[models]'" in json.loads(doctor.stdout)["extras"]["models"]
