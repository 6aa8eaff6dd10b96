"""SAM 2: the mask of a box in a picture, and masks that follow points of the first frame through a clip.

The network is that of transformers. Frames are handed to it one by one, and of what it remembers only that is kept
which it reads again: the masks of six frames before, the pointers of fifteen, and the first frame.

The image step goes through the parts of the video network, which are those of the image network.

Source: Ravi et al. 2024, SAM 2; PAI-Bench-C, mask mIoU (public code).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from transformers import Sam2VideoInferenceSession

from gen_eval.networks.folders import FolderError, check_kind, read_pretrained
from gen_eval.records import ItemError, Reason

_BOXES = 16  # at a time; bounds memory
_FILLED = 0.1  # value of a filled hole: just inside
_ENDLESS = 2**31


class VideoSegments(nn.Module):
    """The segmenter.

    Args:
        network: ``Sam2VideoModel``.
    """

    casts_weights = False  # the public code runs it in mixed precision, too

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    @property
    def side(self) -> int:
        """Height and width of the pictures that it looks at."""
        return int(self.network.image_size)

    @property
    def looks_back(self) -> int:
        """How many frames of a clip bear on the next one, itself counted."""
        config = self.network.config
        return max(int(config.max_object_pointers_in_encoder), int(config.num_maskmem))

    def prefer_stable(self, delta: float, threshold: float) -> None:
        """Take another mask than the first where that one is not stable.

        Args:
            delta: a mask is compared at the logits ``delta`` and ``-delta``.
            threshold: least share of pixels that stay.
        """
        decoder = self.network.mask_decoder
        decoder.dynamic_multimask_via_stability = True
        decoder.dynamic_multimask_stability_delta = delta
        decoder.dynamic_multimask_stability_thresh = threshold

    def segment(self, picture: Tensor, boxes: Tensor) -> Tensor:
        """One mask for each box of a picture.

        Args:
            picture: (1, 3, side, side), normalised.
            boxes: (n, 4) left, top, right and bottom as shares of width and height.

        Returns:
            (n, h, w) float32 logits, a quarter of ``side`` in published networks.

        Raises:
            ItemError: ``not_finite``.
        """
        network = self.network
        seen = network.get_image_embeddings(picture)
        places = network.get_image_wide_positional_embeddings()
        found = []
        for part in _parts(boxes.to(picture) * self.side):
            sparse, dense = network.get_prompt_embeddings(input_boxes=part[None])
            masks, *_ = network.mask_decoder(
                image_embeddings=seen[-1],
                image_positional_embeddings=places,
                sparse_prompt_embeddings=sparse,
                dense_prompt_embeddings=dense,
                multimask_output=False,
                high_resolution_features=seen[:-1],
            )
            found.append(masks[0, :, 0].float())
        return _finite(torch.cat(found))

    def track(self, points: Tensor, frames: int | None) -> Tracker:
        """Something that follows objects.

        Args:
            points: (n, k, 2) x and y of each object's points in the first frame, as shares of width and height.
            frames: number of the clip's frames when it is below :attr:`looks_back`, else ``None``.
        """
        return Tracker(self, points, frames)


class _Session(Sam2VideoInferenceSession):
    """A session that holds one frame at a time and says how many the clip has."""

    def __init__(self, frames: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._frames = frames

    @property
    def num_frames(self) -> int:
        """Frames of the clip."""
        return self._frames


class Tracker:
    """Masks of objects, frame by frame; memory does not grow with the number of frames."""

    def __init__(self, segmenter: VideoSegments, points: Tensor, frames: int | None) -> None:
        self._network = segmenter.network
        self._looks_back = segmenter.looks_back
        self._masks_back = int(segmenter.network.config.num_maskmem)
        self._next = 0
        device = points.device
        self._session = _Session(
            _ENDLESS if frames is None else frames,
            inference_device=device,
            inference_state_device=device,
            video_storage_device=device,
            dtype=torch.float32,
            max_vision_features_cache_size=1,
        )
        for number, own in enumerate(points * segmenter.side):
            given = {
                "point_coords": own[None, None].float(),
                "point_labels": torch.ones((1, 1, len(own)), dtype=torch.int64, device=device),
            }
            self._session.add_point_inputs(self._session.obj_id_to_idx(number), 0, given)
        self._session.obj_with_new_inputs = list(range(len(points)))

    def step(self, picture: Tensor) -> Tensor:
        """Masks in the next frame.

        Args:
            picture: (1, 3, side, side), normalised.

        Returns:
            (n, h, w) float32 logits.

        Raises:
            ItemError: ``not_finite``.
        """
        self._session.processed_frames = {self._next: picture[0]}
        output = self._network(self._session, frame_idx=self._next)
        self._forget()
        self._next += 1
        return _finite(output.pred_masks[:, 0].float())

    def _forget(self) -> None:
        """Let go of what is not read again."""
        for one in self._session.output_dict_per_obj.values():
            later = one["non_cond_frame_outputs"]
            later.pop(self._next + 1 - self._looks_back, None)
            if (older := later.get(self._next + 1 - self._masks_back)) is not None:
                older.pop("maskmem_features", None)
                older.pop("maskmem_pos_enc", None)
            for kept in (later.get(self._next), one["cond_frame_outputs"].get(self._next)):
                if kept is not None:
                    kept.pop("high_res_masks", None)
                    kept.pop("pred_masks", None)
        for tracked in self._session.frames_tracked_per_obj.values():
            tracked.clear()


def fill_holes(masks: Tensor, area: int) -> Tensor:
    """``masks`` with every hole of at most ``area`` pixels filled, as the public video predictor does it.

    A hole is a group of pixels at or below 0 that touch at an edge or a corner; the ground itself is one, where it is
    that small.

    Args:
        masks: (n, h, w) logits.
        area: pixels; 0 leaves the masks as they are.
    """
    if area < 1:
        return masks
    outside = (masks <= 0).cpu().numpy().astype(np.uint8)
    holes = np.zeros(outside.shape, np.bool_)
    for mask, hole in zip(outside, holes, strict=True):
        _, labels, figures, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
        small = figures[:, cv2.CC_STAT_AREA] <= area
        small[0] = False  # what is inside of the mask
        hole[:] = small[labels]
    return torch.where(torch.from_numpy(holes).to(masks.device), _FILLED, masks)


def at_size(masks: Tensor, height: int, width: int) -> Tensor:
    """Logits (n, h, w), bilinear at another size, as (n, height, width) bool: which are above 0."""
    parts = [
        nn.functional.interpolate(part[:, None], (height, width), mode="bilinear", align_corners=False)[:, 0] > 0
        for part in _parts(masks)
    ]
    return torch.cat(parts)


def _parts(tensor: Tensor) -> list[Tensor]:
    return [tensor[start : start + _BOXES] for start in range(0, len(tensor), _BOXES)]


def _finite(masks: Tensor) -> Tensor:
    if not masks.isfinite().all():
        raise ItemError(Reason.NOT_FINITE, "the segmenter gave numbers that are not finite")
    return masks


def open_folder(folder: Path) -> VideoSegments:
    """The segmenter of a folder with ``config.json`` and ``model.safetensors``.

    Raises:
        FolderError: it holds another network, or its files do not fit together.
    """
    from transformers import Sam2VideoModel

    check_kind(folder, "sam2_video")
    network = read_pretrained(Sam2VideoModel, folder, attn_implementation="sdpa")
    inner = network.config.prompt_encoder_config.image_size
    if inner != network.config.image_size:
        raise FolderError(f"has parts for pictures of {network.config.image_size} and of {inner} pixels")
    return VideoSegments(network)
