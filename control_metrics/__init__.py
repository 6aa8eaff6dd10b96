"""PAI-Bench-C: how closely a generated video follows the control signals of a real one.

The public functions take arrays, (T, H, W, 3) uint8 RGB for frames, and return small frozen results.
"""

from control_metrics.blur import blur_ssim
from control_metrics.depth import depth_si_rmse
from control_metrics.diversity import diversity
from control_metrics.edge import edge_f1
from control_metrics.mask import mask_miou
from control_metrics.visual_quality import visual_quality

__all__ = ["blur_ssim", "depth_si_rmse", "diversity", "edge_f1", "mask_miou", "visual_quality"]
