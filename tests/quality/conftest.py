"""Small networks with stand-in numbers in place of the published ones, and the clips of the goldens."""

import json

import numpy as np
import pytest

from bench.stand_in import SMALL, write
from gen_eval.settings import settings

NETWORKS = [*SMALL, "aesthetic_head"]


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory):
    """The environment in which gen-eval finds the small networks."""
    return write(tmp_path_factory.mktemp("stand_ins"), NETWORKS, small=True)


@pytest.fixture
def small_networks(stand_ins, use_environment):
    """Use the small networks in this process."""
    use_environment(stand_ins)


@pytest.fixture
def no_networks(tmp_path, monkeypatch):
    """A weights folder in which nothing lies."""
    monkeypatch.setenv("GEN_EVAL_WEIGHTS", str(tmp_path / "nothing"))
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.fixture(scope="session")
def quality_goldens(request):
    return request.config.rootpath / "tests" / "goldens" / "quality"


@pytest.fixture(scope="session")
def golden_clip(quality_goldens):
    """`golden_clip(name)`: frames (T, H, W, 3) and condition image (H, W, 3)."""

    def read(name):
        with np.load(quality_goldens / "clips" / f"{name}.npz") as arrays:
            return arrays["frames"], arrays["condition"]

    return read


@pytest.fixture(scope="session")
def golden_scores(quality_goldens):
    """`golden_scores[clip][metric]`: a number, or {"error": exception}."""
    return json.loads((quality_goldens / "scores.json").read_text())["clips"]


@pytest.fixture(scope="session")
def metric_layer(quality_goldens):
    """Cases of the metric layer: name -> (features of frames, of the condition image, expected), and the aggregate."""
    expected = json.loads((quality_goldens / "metric_layer.json").read_text())
    with np.load(quality_goldens / "metric_layer.npz") as arrays:
        features = dict(arrays)
    cases = {
        name: (features[f"{name}/frames"], features[f"{name}/condition"], values)
        for name, values in expected["cases"].items()
    }
    lengths = [features[f"aggregate_v{number}/frames"] for number in range(3)]
    return cases, lengths, expected["aggregate"]


@pytest.fixture(scope="session")
def measured():
    """`measured(metric, features, condition=None, sizes=(3,), protocol=)`: what a metric makes of features as given.

    The features are handed over in chunks whose memory is used again.
    """
    from gen_eval.features import StreamInfo
    from gen_eval.features.arrays import finish
    from gen_eval.protocols import load_protocol

    def run(metric, features, condition=None, size=3, protocol="corrected"):
        chosen = load_protocol(metric.name, protocol)
        (feature,) = metric.member_features(chosen.measure)
        image = None
        if condition is not None:
            (of_image,) = metric.image_features(chosen.measure)
            image = {of_image: condition}
        meter = metric.meter(chosen.measure, StreamInfo(8, 8), image=image)
        buffer = np.empty((size, *features.shape[1:]), features.dtype)
        worst = []
        for start in range(0, len(features), size):
            part = buffer[: len(features[start : start + size])]
            part[:] = features[start : start + size]
            worst += meter.update({feature: part})
            buffer[:] = 7
        assert len(worst) == len(features)
        return finish(metric, meter.counts(), chosen)

    return run


@pytest.fixture(scope="session")
def motion_stand_ins(tmp_path_factory, seeded_array):
    """The environment in which gen-eval finds AMT-S and RAFT; the latter under the names of its original file."""
    from safetensors.numpy import save_file

    from gen_eval.weights import manifest

    folder = tmp_path_factory.mktemp("motion_stand_ins")
    environment = write(folder, ["amt_s", "raft_things"], small=False)
    state = {}
    for name, shape in manifest("raft_things").items():
        if name.endswith("num_batches_tracked"):
            state[name] = np.zeros(shape, np.int64)
        else:
            factor = np.float32(0.05) if name.startswith("update_block.flow_head.conv2.") else 1
            state[name] = np.asarray(seeded_array(name, tuple(shape)) * factor)
    save_file(state, folder / "weights" / "raft_things" / "stand-in.safetensors")
    return environment


@pytest.fixture
def motion_networks(motion_stand_ins, use_environment):
    """Use AMT-S and RAFT with stand-in numbers in this process."""
    use_environment(motion_stand_ins)
