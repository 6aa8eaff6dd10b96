"""The words that the readers of replies know, and the two patterns that all of them share."""

from __future__ import annotations

YES = ("yes", "yeah", "yep", "true", "correct")
NO = ("no", "nope", "false", "incorrect")

UNSURE_CHINESE = (
    "不确定",
    "不確定",
    "不知道",
    "不清楚",
    "不能确定",
    "不能確定",
    "无法",
    "無法",
    "不明",
    "对不起",
    "對不起",
)
"""Openings that say neither; the last two are an apology that begins like a yes."""
NO_CHINESE = ("不", "否", "没有", "沒有")
YES_CHINESE = ("是", "对", "對", "有")

FILLER = (
    "the",
    "final",
    "finally",
    "correct",
    "right",
    "best",
    "answer",
    "choice",
    "option",
    "letter",
    "is",
    "be",
    "it",
    "its",
    "it's",
    "must",
    "would",
    "should",
    "will",
    "i",
    "we",
    "choose",
    "pick",
    "select",
    "say",
    "go",
    "with",
    "leaves",
    "that",
    "only",
    "remaining",
    "one",
    "definitely",
    "certainly",
    "clearly",
    "probably",
    "likely",
    "most",
    "obviously",
    "simply",
    "therefore",
    "thus",
    "so",
)
"""What may stand between a cue and the answer that it announces."""

VERDICT_CUES = ("answer", "verdict", "conclusion", "so", "thus", "therefore", "hence", "final", "finally", "say")
"""What announces a yes or a no."""

LETTER_CUES = (
    "answer",
    "so",
    "thus",
    "therefore",
    "hence",
    "final",
    "finally",
    "conclusion",
    "choose",
    "pick",
    "select",
    "say",
    "leaves",
    "go with",
    r"(?:option|choice)(?= ?(?:is(?!\w)|[:=]|(?:would|must|should) be(?!\w)))",
)
"""What announces a letter (patterns)."""

RIGHT = ("right", "correct", "best", "true", "answer", "likely")
"""What a letter is said to be when it is the one."""

AFTER_ARTICLE = ("or", "and", "is", "was", "because", "since", "as", "seems", "looks", "would", "must", "but")
"""Lower-case words before which a capital A is a letter and no article."""

NO_ANSWER = ("n/a", "none", "unknown", "idk", "null")
"""Whole replies that say that there is no answer."""

REJECTING = ("not", "neither", "nor", "never", "except", "than", "instead of", "cannot")
"""What rejects the letter after it (as does a verb that ends in n't)."""

VERBS_PLURAL = (
    "are",
    "were",
    "look",
    "seem",
    "appear",
    "can",
    "could",
    "may",
    "might",
    "must",
    "would",
    "will",
    "should",
    "have",
    "do",
    "did",
)
VERBS = (*VERBS_PLURAL, "is", "was", "be", "been", "looks", "seems", "appears", "has", "does", "to")
ADVERBS = (
    "clearly",
    "definitely",
    "also",
    "a",
    "an",
    "the",
    "just",
    "simply",
    "obviously",
    "probably",
    "likely",
    "certainly",
    "very",
    "quite",
    "most",
    "highly",
    "completely",
    "totally",
    "all",
    "both",
    "be",
    "been",
    "to",
)
REJECTED = (
    "wrong",
    "incorrect",
    "false",
    "not",
    "impossible",
    "out",
    "excluded",
    "eliminated",
    "contradicted",
    "implausible",
    "unlikely",
    "distractor",
    "distractors",
    "odd",
    "cannot",
    "ruled out",
)
"""What is said, after one of the verbs, of a letter that is rejected."""

ANSWER_KEYS = ("answer", "final_answer", "choice", "option", "prediction")
"""Keys of an object that hold the answer, the first that is present counts."""

REASONING_TAGS = ("think", "thinking", "thought", "reasoning", "analysis")

CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Characters that are words of their own, for use inside a character class."""

CLAUSE_END = r"(?='? ?(?:\Z|[\n.,;:!?)\]。、–—―])|'? ?-(?!\w)|'? -|'? (?:because|since|as|given)(?!\w))"
"""A place after a word where a clause may end."""


def any_of(words: tuple[str, ...]) -> str:
    """A pattern that matches one of ``words``, as a group of its own."""
    return f"(?:{'|'.join(words)})"
