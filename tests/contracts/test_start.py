"""What the command line loads, and how it says what it cannot find."""

import json
import os
import subprocess
import sys

import pytest

from gen_eval.records import InputError, MissingPart
from gen_eval.registry import load, names, require

HEAVY = ("torch", "numpy", "cv2", "av", "pandas", "matplotlib", "scipy", "sqlalchemy", "skimage", "pyarrow")
TRACKS = ("control_metrics", "judge", "understanding", "gen_eval.quality", "gen_eval.features", "gen_eval.media")


def modules_after(*arguments):
    code = f"""
import sys, json
sys.argv = ["gen-eval", *{list(arguments)!r}]
from api.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ)
    return set(json.loads(done.stderr.splitlines()[-1])), done.stdout


@pytest.mark.parametrize(
    "arguments", [("--help",), ("score", "--help"), ("score", "control", "--help"), ("--version",)]
)
def test_help_loads_nothing_heavy(arguments):
    loaded, printed = modules_after(*arguments)
    assert printed
    assert not [name for name in (*HEAVY, *TRACKS) if name in loaded]


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lpips", None)  # as if it were not installed
    with pytest.raises(MissingPart, match=r"pip install 'gen-eval\[models\]'"):
        require("lpips")


def test_an_unknown_name_offers_a_near_one():
    with pytest.raises(InputError, match="did you mean blur_ssim"):
        load("gen_eval.metrics", "blur_sim")


def test_every_metric_of_the_table_states_its_facts():
    from gen_eval.features import Metric
    from gen_eval.protocols import load_protocol, protocol_names
    from gen_eval.records import MetricFacts

    for name in names("gen_eval.metrics"):
        metric = load("gen_eval.metrics", name)
        assert isinstance(metric, Metric | MetricFacts)
        assert metric.name == name
        if isinstance(metric, Metric):
            assert metric.track in {"quality", "control"}
            assert metric.inputs in {"single", "pair", "set"}
        else:
            assert metric.track in {"domain", "understanding"}
        assert metric.source
        assert metric.unit
        assert {"reference", "corrected"} <= set(protocol_names(name))
        digests = {load_protocol(name, protocol).digest for protocol in protocol_names(name)}
        assert digests


def test_every_generator_of_the_table_is_one():
    from gen_eval.generators.base import Generator

    for name in names("gen_eval.generators"):
        assert isinstance(load("gen_eval.generators", name), Generator)


@pytest.mark.parametrize(
    "module", ["gen_eval.quality", "gen_eval.networks", "gen_eval.weights", "gen_eval.features.planner"]
)
def test_metrics_are_known_without_torch(module):
    heavy = {"torch", "timm", "open_clip", "torchvision"}
    code = f"import sys, {module}; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
