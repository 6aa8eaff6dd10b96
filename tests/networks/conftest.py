"""Small networks and clips of the goldens."""

import json

import numpy as np
import pytest

SUBJECT = {"resize": "shorter", "side": 224, "filter": "bilinear", "antialias": False, "normalise": "imagenet"}
CLIP = {"resize": "shorter", "side": 224, "filter": "bicubic", "antialias": False, "crop": 224, "normalise": "clip"}
I2V_SUBJECT = SUBJECT | {"side": 256, "filter": "bicubic", "antialias": True, "crop": 224}
I2V_BACKGROUND = {"resize": "square", "side": 224, "filter": "bicubic", "antialias": True}


@pytest.fixture(scope="session")
def view_rules():
    """The views of the protocol by what they are for."""
    return {"subject": SUBJECT, "clip": CLIP, "i2v_subject": I2V_SUBJECT, "i2v_background": I2V_BACKGROUND}


@pytest.fixture(scope="session")
def quality_goldens(request):
    return request.config.rootpath / "tests" / "goldens" / "quality"


@pytest.fixture(scope="session")
def golden_clip(quality_goldens):
    """`golden_clip(name)`: frames (T, H, W, 3) and condition image (1, H, W, 3)."""

    def read(name):
        with np.load(quality_goldens / "clips" / f"{name}.npz") as arrays:
            return arrays["frames"], arrays["condition"][None]

    return read


@pytest.fixture(scope="session")
def golden_features(quality_goldens):
    with np.load(quality_goldens / "features.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def full_size(quality_goldens):
    with np.load(quality_goldens / "full_size.npz") as arrays:
        assert set(json.loads((quality_goldens / "full_size.json").read_text())["keys"]) == set(arrays)
        return dict(arrays)


@pytest.fixture
def no_gradients():
    import torch

    with torch.inference_mode():
        yield


@pytest.fixture(scope="session")
def unset():
    """`unset(build, **sizes)`: a network without the time that drawing its first numbers would take."""

    def make(build, **sizes):
        import torch

        with torch.device("meta"):
            network = build(**sizes)
        return network.to_empty(device="cpu")

    return make


@pytest.fixture(scope="session")
def raft_state(seeded_array):
    """Stand-in numbers of RAFT under the names of its original file."""
    import torch

    from gen_eval.weights import manifest

    state = {}
    for name, shape in manifest("raft_things").items():
        counter = name.endswith("num_batches_tracked")
        drawn = np.zeros(shape, np.int64) if counter else seeded_array(name, tuple(shape))
        factor = np.float32(0.05) if name.startswith("update_block.flow_head.conv2.") else 1
        state[name] = torch.from_numpy(np.asarray(drawn * factor))
    return state


@pytest.fixture(scope="session")
def goldens_control(request):
    return request.config.rootpath / "tests" / "goldens" / "control"


@pytest.fixture(scope="session")
def formula_clip():
    """The clip (T, H, W, 3) uint8 that the formula of goldens/control describes."""

    def make(T, H, W, k=0):
        t, y, x, c = np.ogrid[:T, :H, :W, :3]
        tiles = ((x // 16) ^ (y // 16)) & 7
        return ((x * (3 + c) + y * (5 - c) + 7 * t * (c + 1) + 13 * tiles + 17 * k) % 256).astype(np.uint8)

    return make
