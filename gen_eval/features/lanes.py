"""A lane: one meter, the features that feed it, the worst frame seen, and what went wrong."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gen_eval.features.arrays import finish, out_of_memory, without_value
from gen_eval.features.metric import Coverage, Meter
from gen_eval.features.plan import Measurement
from gen_eval.protocols import Protocol
from gen_eval.records import InputError, ItemError, MetricResult, MissingPart, Reason

Encode = Callable[[Any], bytes]
Evidence = Callable[[Sequence[Any], int], Mapping[str, Any]]


def guarded(log: list[str]) -> Callable[[Callable[[], Any]], ItemError | None]:
    """A runner that turns whatever goes wrong in a metric into an :class:`ItemError`.

    Surprises keep their traceback in ``log``; they are told apart from expected problems by ``internal_error``. A part
    that is missing, and a parameter that makes no sense, are no trouble of one item and are raised.
    """

    def run(step: Callable[[], Any]) -> ItemError | None:
        try:
            step()
        except ItemError as error:
            return error
        except (InputError, MissingPart):
            raise
        except MemoryError:
            return out_of_memory()
        except Exception as error:
            log.append(traceback.format_exc())
            return ItemError(
                Reason.INTERNAL_ERROR,
                f"{type(error).__name__}: {error}; the traceback is in run.log.jsonl",
                {"exception": type(error).__name__},
            )
        return None

    return run


class Lane:
    """One measurement of one member (or of all members together)."""

    def __init__(self, meter: Meter | None, error: ItemError | None = None) -> None:
        self.meter = meter
        self.error = error
        self._worst = math.inf
        self.worst_frame: int | None = None
        self.pictures: dict[str, bytes] = {}
        self._seen = 0
        self._before: list[Any] = []

    @property
    def live(self) -> bool:
        """Whether it still takes chunks."""
        return self.error is None and self.meter is not None

    def fail(self, error: ItemError) -> None:
        """Stop with ``error``; the first one stays."""
        self.error = self.error or error

    def update(
        self,
        chunks: Sequence[Any],
        frames: Sequence[Any],
        encode: Encode,
        *,
        late: bool = False,
        evidence: Evidence | None = None,
    ) -> None:
        """Feed the meter and keep a picture of the worst frame so far.

        Args:
            chunks: arguments of the meter's ``update``.
            frames: frames of the generated clip, and of the reference clip for a pair.
            encode: makes a picture of a frame.
            late: what the meter returns belongs to the frame before each.
            evidence: makes further pictures of a frame of ``chunks``.
        """
        assert self.meter is not None
        values = self.meter.update(*chunks)
        if values is not None:
            finite = [(value, index) for index, value in enumerate(values) if math.isfinite(value)]
            if finite and min(finite)[0] < self._worst:
                self._worst, index = min(finite)
                self._keep(index - late, frames, encode)
                if evidence is not None:
                    self.pictures |= {role: encode(frame) for role, frame in evidence(chunks, index).items()}
        self._seen += len(frames[0])
        if late:
            self._before = [clip[-1].copy() for clip in frames]  # the chunk's memory is used again

    def _keep(self, index: int, frames: Sequence[Any], encode: Encode) -> None:
        """Remember frame ``index`` of the chunk, -1 for the one before it."""
        self.worst_frame = self._seen + index
        chosen = [clip[index] for clip in frames] if index >= 0 else self._before
        self.pictures = {role: encode(frame) for role, frame in zip(("worst", "worst_reference"), chosen, strict=False)}

    def result(self, measurement: Measurement, protocol: Protocol, coverage: Coverage | None) -> MetricResult:
        """What ``protocol`` makes of the counts, or of the error."""
        if self.error is not None:
            result = without_value(measurement.metric, protocol, self.error)
        else:
            assert self.meter is not None
            result = finish(measurement.metric, self.meter.counts(), protocol)
            result = result if coverage is None else coverage.annotate(result)
        if self.worst_frame is not None:
            result = result.with_detail(worst_frame=self.worst_frame)
        return result
