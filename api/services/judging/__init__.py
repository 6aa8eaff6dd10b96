"""`gen-eval judge`: one question, what a judge is worth, how far judges agree."""

from api.services.judging.agreement import agree
from api.services.judging.calibration import Calibrated, CalibrationRequest, calibrate_judge
from api.services.judging.single import ask_one

__all__ = ["Calibrated", "CalibrationRequest", "agree", "ask_one", "calibrate_judge"]
