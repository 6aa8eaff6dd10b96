"""The eight dimensions the plain way: each decodes the file again, prepares all of it as floats, and asks its network.

Batches are those of the public code: one frame (subject, imaging, both image-to-video dimensions), 32 (aesthetic), the
whole video (background, there with gradients recorded), one pair (motion). timm's and open_clip's networks run as their
packages run them; AMT-S is run to the letter of its description; MUSIQ and ViCLIP are the same module on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from torchvision import transforms
from torchvision.transforms import InterpolationMode

from bench.plain import decoded
from bench.plain_amt import interpolate
from gen_eval.networks.loading import loaded

_IMAGENET = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CLIP = transforms.Normalize((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_BICUBIC = InterpolationMode.BICUBIC
_AESTHETIC_BATCH = 32
_PADDING = 16


def floats(path: Path) -> Tensor:
    """All frames (T, 3, H, W) float32 0..255."""
    return torch.from_numpy(decoded(path)).permute(0, 3, 1, 2).float()


def _over_255(x: Tensor) -> Tensor:
    return x / 255.0


_SUBJECT = transforms.Compose([transforms.Resize(224, antialias=False), _over_255, _IMAGENET])
_CLIP_VIEW = transforms.Compose(
    [transforms.Resize(224, _BICUBIC, antialias=False), transforms.CenterCrop(224), _over_255, _CLIP]
)
_I2V_SUBJECT = transforms.Compose([transforms.Resize(256, _BICUBIC), transforms.CenterCrop(224), _over_255, _IMAGENET])
_I2V_BACKGROUND = transforms.Compose([transforms.Resize((224, 224), _BICUBIC), _over_255])


def prepare_subject(path: Path) -> Tensor:
    """Frames as DINO sees them."""
    return _SUBJECT(floats(path))


def prepare_clip(path: Path) -> Tensor:
    """Frames as CLIP sees them."""
    return _CLIP_VIEW(floats(path))


def prepare_motion(path: Path) -> tuple[Any, list[Tensor]]:
    """Source frames, and every second one padded."""
    frames = decoded(path)
    inputs = [torch.from_numpy(frame).permute(2, 0, 1)[None].float() / 255.0 for frame in frames[::2]]
    height, width = frames.shape[1:3]
    below, beside = -height % _PADDING, -width % _PADDING
    padding = [beside // 2, beside - beside // 2, below // 2, below - below // 2]
    return frames, [functional.pad(one, padding, mode="replicate") for one in inputs]


def prepare_imaging(path: Path) -> Tensor:
    """Frames as MUSIQ sees them."""
    frames = floats(path)
    height, width = frames.shape[2:]
    scale = 512.0 / max(height, width)
    if scale < 1:
        frames = transforms.Resize((int(scale * height), int(scale * width)), antialias=False)(frames)
    return frames / 255.0


def prepare_overall(path: Path) -> Tensor:
    """The eight frames as ViCLIP sees them."""
    frames = decoded(path)
    cuts = np.linspace(0, len(frames), min(8, len(frames)) + 1).astype(int)
    chosen = [(first + after - 1) // 2 for first, after in pairwise(cuts)]
    chosen += [chosen[-1]] * (8 - len(chosen))
    return _CLIP_VIEW(torch.from_numpy(frames[chosen]).permute(0, 3, 1, 2))


def prepare_i2v_subject(path: Path) -> Tensor:
    """Frames as DINO sees them, square."""
    return _I2V_SUBJECT(floats(path))


def prepare_i2v_background(path: Path) -> Tensor:
    """Frames as DreamSim sees them."""
    return _I2V_BACKGROUND(floats(path))


PREPARE: Mapping[str, Callable[[Path], Any]] = {
    "subject_consistency": prepare_subject,
    "background_consistency": prepare_clip,
    "motion_smoothness": prepare_motion,
    "aesthetic_quality": prepare_clip,
    "imaging_quality": prepare_imaging,
    "overall_consistency": prepare_overall,
    "i2v_subject": prepare_i2v_subject,
    "i2v_background": prepare_i2v_background,
}
"""Dimension -> its decoding and preprocessing."""


# --- networks, as their packages run them ---------------------------------------------------------------------------


def whole_vit(module: Any, batch: Tensor, *, last_norm: bool = True) -> Tensor:
    """The class token of timm's transformer, all tokens through all blocks."""
    patches = module.patch_embed.proj(batch).flatten(2).transpose(1, 2)
    tokens = torch.cat([module.cls_token.expand(len(batch), -1, -1), patches], dim=1)
    tokens = module.pos_drop(tokens + module.positions(batch.shape[2], batch.shape[3]))
    tokens = module.blocks(tokens)
    return (module.norm(tokens) if last_norm else tokens)[:, 0]


def whole_dreamsim(module: Any, batch: Tensor) -> Tensor:
    """The ensemble's embedding."""
    dino, clip, open_clip = module.extractor_list
    parts = [whole_vit(dino.model, _IMAGENET(batch), last_norm=False)]
    parts += [whole_vit(one.model, _CLIP(batch)) @ one.proj for one in (clip, open_clip)]
    joined = torch.cat(parts, dim=1)
    centred = joined - joined.mean(dim=1, keepdim=True)
    return centred / centred.norm(dim=1, keepdim=True)


def _similar(features: Tensor, image: Tensor | None = None) -> float:
    unit = functional.normalize(features, dim=-1)
    steps = torch.cosine_similarity(unit[:-1], unit[1:]).clamp(min=0)
    if image is None:
        return float(((torch.cosine_similarity(unit[:1], unit[1:]).clamp(min=0) + steps) / 2).mean())
    to_image = torch.cosine_similarity(functional.normalize(image, dim=-1), unit).clamp(min=0)
    return float(0.4 * to_image.max() + 0.3 * steps.mean() + 0.3 * steps.min())


def _one_by_one(ask: Callable[[Tensor], Tensor], frames: Tensor) -> Tensor:
    return torch.cat([ask(frame[None]) for frame in frames])


def subject(path: Path, sample: Any) -> float:
    """SC."""
    module = loaded("dino_vitb16")
    return _similar(_one_by_one(lambda frame: whole_vit(module, frame), prepare_subject(path)))


def background(path: Path, sample: Any) -> float:
    """BC: one batch, with gradients recorded."""
    module = loaded("clip_vitb32_visual")
    with torch.inference_mode(False), torch.enable_grad():
        return _similar(module.visual(prepare_clip(path).requires_grad_()).detach())


def motion(path: Path, sample: Any) -> float:
    """MS."""
    module = loaded("amt_s")
    frames, inputs = prepare_motion(path)
    height, width = frames.shape[1:3]
    top, left = (-height % _PADDING) // 2, (-width % _PADDING) // 2
    errors = []
    for number, (first, last) in enumerate(pairwise(inputs)):
        middle = interpolate(module, first, last)[0, :, top : top + height, left : left + width]
        drawn = (middle * 255).clamp(0, 255).byte().permute(1, 2, 0).numpy()
        errors.append(np.abs(drawn.astype(int) - frames[2 * number + 1].astype(int)).mean())
    return float((255 - np.mean(errors)) / 255)


def aesthetic(path: Path, sample: Any) -> float:
    """AQ."""
    tower, head = loaded("clip_vitl14_visual"), loaded("aesthetic_head")
    scores = []
    for batch in prepare_clip(path).split(_AESTHETIC_BATCH):
        unit = functional.normalize(tower.visual(batch).float(), dim=-1)
        scores.append(functional.linear(unit, head.weight, head.bias))
    return float(torch.cat(scores).mean() / 10)


def imaging(path: Path, sample: Any) -> float:
    """IQ."""
    module = loaded("musiq_spaq")
    return float(_one_by_one(module.embed, prepare_imaging(path)).mean() / 100)


def overall(path: Path, sample: Any) -> float:
    """OC."""
    module = loaded("viclip")
    tokens, _ = module.tokenize([sample.prompt])
    return float(torch.cosine_similarity(module.embed_clip(prepare_overall(path)[None]), module.embed_text(tokens)))


def i2v_subject(path: Path, sample: Any) -> float:
    """IS."""
    module = loaded("dino_vitb16")
    image = Image.open(sample.condition_image).convert("RGB")
    square = transforms.CenterCrop(224)(transforms.Resize(256, _BICUBIC)(image))
    condition = whole_vit(module, _IMAGENET(transforms.functional.to_tensor(square))[None])
    return _similar(_one_by_one(lambda frame: whole_vit(module, frame), prepare_i2v_subject(path)), condition)


def i2v_background(path: Path, sample: Any) -> float:
    """IB."""
    module = loaded("dreamsim_ensemble")
    image = transforms.Resize((224, 224), _BICUBIC)(Image.open(sample.condition_image).convert("RGB"))
    condition = whole_dreamsim(module, transforms.functional.to_tensor(image)[None])
    return _similar(_one_by_one(lambda frame: whole_dreamsim(module, frame), prepare_i2v_background(path)), condition)


DIMENSIONS: Mapping[str, Callable[[Path, Any], float]] = {
    "subject_consistency": subject,
    "background_consistency": background,
    "motion_smoothness": motion,
    "aesthetic_quality": aesthetic,
    "imaging_quality": imaging,
    "overall_consistency": overall,
    "i2v_subject": i2v_subject,
    "i2v_background": i2v_background,
}
"""Dimension -> its score of one video."""
