"""Messages for questions with lettered options."""

from __future__ import annotations

from gen_eval.mllm import Frames, Message, VideoFile
from understanding.data.choices import ChoiceSample
from understanding.messages.forms import PromptForm


def choice_messages(
    sample: ChoiceSample, part: Frames | VideoFile | None, form: PromptForm, *, family: str = "generic"
) -> tuple[Message, ...]:
    """The turns that put ``sample`` to a model.

    Args:
        sample: the question, with its options as they are to be shown (rotated or not).
        part: what is shown of the video; ``None`` asks without it, and then nothing speaks of one.
        form: the words.
        family: of the model, for what some families do not get.

    Raises:
        ValueError: the sample has no question or no options.
    """
    words = question_text(sample, form)
    if form.ending and family not in form.ending_not_for:
        words = f"{words}\n{form.ending}"
    system = form.system_turn(video=part is not None)
    if part is None:
        user = Message.of("user", words)
    else:
        user = Message.of("user", part, words) if form.video == "first" else Message.of("user", words, part)
    return (*([Message.of("system", system)] if system else []), user)


def second_stage_messages(sample: ChoiceSample, reply: str, form: PromptForm) -> tuple[Message, ...]:
    """The turns that ask a text model which option a reply chooses; the right answer is not among them.

    Raises:
        ValueError: the sample has no question or no options.
    """
    cut = reply if form.longest_reply is None else reply[-form.longest_reply :]
    shown = form.reply.replace("{reply}", cut)
    words = f"{_head(sample, form)}{shown}{form.after}"
    system = form.system_turn(video=False)
    return (*([Message.of("system", system)] if system else []), Message.of("user", words))


def question_text(sample: ChoiceSample, form: PromptForm) -> str:
    """The question with its options and what is asked for.

    Raises:
        ValueError: the sample has no question or no options.
    """
    return "\n".join(piece for piece in (form.before, _head(sample, form), form.after) if piece)


def _head(sample: ChoiceSample, form: PromptForm) -> str:
    if sample.question is None or not sample.letters:
        missing = "question" if sample.question is None else "options"
        raise ValueError(f"{sample.id!r} has no {missing}; a model can only be asked with them")
    question = sample.question
    for sentence in form.drop:
        question = question.replace(sentence, "")
    options = (
        form.option.replace("{letter}", letter).replace("{text}", sample.options[letter] or "")
        for letter in sample.letters
    )
    return f"{question.strip()}{form.gap}{chr(10).join(options)}"
