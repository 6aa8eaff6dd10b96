"""`gen-eval score domain`: a judge answers questions about generated videos."""

from api.services.domain.request import CONDITIONS, DomainRequest
from api.services.domain.scoring import Judged, Judging, score_domain, score_domain_async, score_replies

__all__ = ["CONDITIONS", "DomainRequest", "Judged", "Judging", "score_domain", "score_domain_async", "score_replies"]
