"""Grounding DINO: boxes of the things that a text names, each with the words that it is found by.

The network is that of transformers. What goes into it and what is read from its outputs is written here, so that no
default of a package decides: the text's tokens come from the folder's ``tokenizer.json``, boxes are kept in the order
of the network's queries and none is suppressed for another.

Source: Liu et al. 2023, Grounding DINO; PAI-Bench-C, mask mIoU (public code).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gen_eval.networks.folders import FolderError, check_kind, read_pretrained
from gen_eval.records import ItemError, Reason


@dataclass(frozen=True)
class Detections:
    """What was found in a picture, in the order of the network's queries.

    Attributes:
        boxes: (n, 4) float32, left, top, right and bottom as shares of width and height; they may lie a little outside.
        scores: (n,) float32, the largest score of a token, 0..1.
        phrases: the words whose score is high enough; may be empty.
        cut: tokens of the text that did not fit.
    """

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    phrases: tuple[str, ...]
    cut: int


class Grounding(nn.Module):
    """The detector with the tokenizer of its text.

    Args:
        network: ``GroundingDinoForObjectDetection``.
        tokenizer: ``tokenizers.Tokenizer``; one that puts a token before and one behind a text.
    """

    casts_weights = False  # the boxes of proposals lose too much in 16 bits

    def __init__(self, network: Any, tokenizer: Any) -> None:
        super().__init__()
        self.network = network
        self._tokenizer = tokenizer

    def tokens(self, text: str, most: int) -> tuple[list[int], int]:
        """Tokens of ``text``, at most ``most`` with the first and the last, and how many were cut between them.

        Raises:
            ValueError: the network takes fewer.
        """
        widest = int(self.network.config.max_text_len)
        if not 3 <= most <= widest:
            raise ValueError(f"a text of {most} tokens was asked for, and it takes 3 to {widest}")
        ids = list(self._tokenizer.encode(text).ids)
        if len(ids) <= most:
            return ids, 0
        return [*ids[: most - 1], ids[-1]], len(ids) - most

    def detect(
        self, picture: Tensor, text: str, *, max_tokens: int, box_threshold: float, text_threshold: float
    ) -> Detections:
        """Find what ``text`` names.

        Args:
            picture: (1, 3, h, w), normalised.
            text: a caption; it is taken whole.
            max_tokens: see :meth:`tokens`.
            box_threshold: a query is kept whose largest score is above it.
            text_threshold: tokens of a phrase have a score above it.

        Raises:
            ItemError: ``not_finite``.
            ValueError: see :meth:`tokens`.
        """
        ids, cut = self.tokens(text, max_tokens)
        given = torch.tensor([ids], device=picture.device)
        outputs = self.network(
            pixel_values=picture,
            pixel_mask=torch.ones((1, *picture.shape[2:]), dtype=torch.long, device=picture.device),
            input_ids=given,
            token_type_ids=torch.zeros_like(given),
            attention_mask=torch.ones_like(given),
            return_dict=True,
        )
        scores = outputs.logits[0].float().sigmoid()  # (queries, positions); 0 where there is no token
        boxes = outputs.pred_boxes[0].float()
        if scores.isnan().any() or not boxes.isfinite().all():
            raise ItemError(Reason.NOT_FINITE, "the detector gave numbers that are not finite")
        best = scores.amax(dim=1)
        kept = best > box_threshold
        return Detections(
            _corners(boxes[kept]).cpu().numpy(),
            best[kept].cpu().numpy(),
            tuple(self._phrase(ids, row) for row in (scores[kept] > text_threshold).cpu()),
            cut,
        )

    def _phrase(self, ids: list[int], chosen: Tensor) -> str:
        """The words of the chosen positions; the first and the last that the network has are none of a phrase."""
        positions = [place for place in chosen[:-1].nonzero()[:, 0].tolist() if place > 0]
        words: str = self._tokenizer.decode([ids[place] for place in positions], skip_special_tokens=False)
        return words


def _corners(boxes: Tensor) -> Tensor:
    """(n, 4) centre, width and height -> left, top, right, bottom."""
    centre, half = boxes[:, :2], boxes[:, 2:] / 2
    return torch.cat((centre - half, centre + half), dim=1)


def open_folder(folder: Path) -> Grounding:
    """The detector of a folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json``.

    Raises:
        FolderError: it holds another network, or its files do not fit together.
    """
    from tokenizers import Tokenizer
    from transformers import GroundingDinoForObjectDetection

    check_kind(folder, "grounding-dino")
    network = read_pretrained(GroundingDinoForObjectDetection, folder, attn_implementation="eager")
    if not (folder / "tokenizer.json").is_file():
        raise FolderError("has no tokenizer.json")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    known = int(network.config.text_config.vocab_size)
    if (largest := max(tokenizer.get_vocab().values(), default=0)) >= known:
        raise FolderError(f"has a tokenizer with the token {largest}; its network knows {known}")
    if len(tokenizer.encode("").ids) != 2:
        raise FolderError("has a tokenizer that does not put one token before and one behind a text")
    return Grounding(network, tokenizer)
