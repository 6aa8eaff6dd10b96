"""Gemini, OpenAI's Responses and Anthropic's Messages: requests field by field, and what their answers mean."""

import asyncio
import base64
import hashlib

import pytest

from gen_eval.mllm import ChatError, ChatRequest, Message, Options, TokenChance, Usage, VideoFile
from gen_eval.mllm.asking import Asker, Limits, open_client
from gen_eval.records import InputError, MissingPart, Reason

SCHEMA = {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"]}
KEY = "key-of-the-test-1234"
BACKENDS = {
    "gemini": ("x-goog-api-key", KEY, "/v1/models/tiny:generateContent"),
    "openai-responses": ("authorization", f"Bearer {KEY}", "/v1/responses"),
    "anthropic": ("x-api-key", KEY, "/v1/messages"),
}
EFFORT = {"thinking": {"mode": "effort", "efforts": ["low", "high"]}}


def data_of(picture):
    return base64.b64encode(picture.data).decode()


def gemini(text="yes", reason="STOP", **more):
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": reason}
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "cachedContentTokenCount": 8}
    return {"candidates": [{**candidate, **more}], "usageMetadata": usage, "modelVersion": "tiny-001"}


def responses(text="yes", status="completed", **more):
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {
        "input_tokens": 20,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 8},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    return {"id": "r", "model": "tiny-001", "status": status, "output": [message], "usage": usage, **more}


def anthropic(text="yes", reason="end_turn"):
    usage = {"input_tokens": 10, "output_tokens": 7, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 8}
    content = [{"type": "text", "text": text}]
    return {"model": "tiny-001", "role": "assistant", "content": content, "stop_reason": reason, "usage": usage}


GOOD = {"gemini": gemini, "openai-responses": responses, "anthropic": anthropic}


@pytest.fixture
def native(served, say, model, monkeypatch):
    """Ask a native backend; what came of it, and the server."""
    monkeypatch.setenv("NATIVE_KEY", KEY)

    def run(backend, body, *requests, pages=None, entry=None, limits=None, prepare=lambda client: None):
        script = body if isinstance(body, list) else [body]
        server = served(*(one if hasattr(one, "status") else say(one) for one in script))
        server.pages = {"/v1/models/tiny": say({"name": "tiny", "version": "2.5"}), **(pages or {})}

        async def main():
            async with server:
                content = {"backend": backend, "endpoint": {"api_key_env": "NATIVE_KEY"}, **(entry or {})}
                client = open_client(model(server.address, **content))
                prepare(client)
                async with Asker(client, limits=limits or Limits(first_wait=0)) as asker:
                    identity = await asker.identity()
                    return identity, await asyncio.gather(*map(asker.ask, requests), return_exceptions=True)

        identity, found = asyncio.run(main())
        return identity, found[0] if len(found) == 1 else found, server

    return run


@pytest.fixture
def conversation(frames, picture):
    """Turns of each kind, with frames and a picture."""

    def make(**options):
        user = Message.of("user", frames(stamps=True, count=2), picture(3, kind="png"), "Is it red?")
        turns = (Message.of("system", "Be brief."), user, Message.of("assistant", "Yes."), Message.of("user", "Sure?"))
        return ChatRequest(turns, Options(**options))

    return make


# --- requests ------------------------------------------------------------------------------------------------------


def test_gemini_field_by_field(native, conversation, frames, picture):
    entry = EFFORT | {"parameters": {"safety": {"HARM_B": "OFF", "HARM_A": "BLOCK_NONE"}, "thoughts": True}}
    options = {"top_p": 0.9, "top_k": 5, "seed": 3, "max_tokens": 64, "stop": ("###",), "logprobs": 2, "effort": "low"}
    request = conversation(schema=SCHEMA, repetition_penalty=1.1, **options)
    identity, reply, server = native("gemini", gemini('{"answer": "yes"}'), request, entry=entry)
    (asked,) = server.questions
    shown = frames(count=2).pictures
    pictures = [{"inlineData": {"mimeType": "image/jpeg", "data": data_of(one)}} for one in shown]
    assert asked.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "<0.0 seconds>"},
                    pictures[0],
                    {"text": "<0.5 seconds>"},
                    pictures[1],
                    {"inlineData": {"mimeType": "image/png", "data": data_of(picture(3, kind="png"))}},
                    {"text": "Is it red?"},
                ],
            },
            {"role": "model", "parts": [{"text": "Yes."}]},
            {"role": "user", "parts": [{"text": "Sure?"}]},
        ],
        "generationConfig": {
            "temperature": 0.0,
            "topP": 0.9,
            "topK": 5,
            "maxOutputTokens": 64,
            "seed": 3,
            "stopSequences": ["###"],
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "responseLogprobs": True,
            "logprobs": 2,
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
        },
        "safetySettings": [
            {"category": "HARM_A", "threshold": "BLOCK_NONE"},
            {"category": "HARM_B", "threshold": "OFF"},
        ],
    }
    assert (reply.form, reply.ignored) == ("images", ("logprobs", "repetition_penalty"))
    assert (identity.model, identity.engine, identity.version) == ("tiny", "gemini", "2.5")


@pytest.mark.parametrize(("thinking", "budget"), [(True, -1), (False, 0)])
def test_gemini_reasons_or_not(native, ask_for, thinking, budget):
    entry = {"thinking": {"mode": "switch"}, "parameters": {"media_resolution": "MEDIA_RESOLUTION_LOW"}}
    _, _, server = native("gemini", gemini(), ask_for(thinking=thinking, choices=("yes", "no")), entry=entry)
    assert server.questions[0].body["generationConfig"] == {
        "temperature": 0.0,
        "topP": 1.0,
        "maxOutputTokens": 1024,
        "responseMimeType": "text/x.enum",
        "responseSchema": {"type": "STRING", "enum": ["yes", "no"]},
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
        "thinkingConfig": {"thinkingBudget": budget},
    }


def test_responses_field_by_field(native, conversation, frames, picture):
    entry = EFFORT | {"parameters": {"detail": "low", "summary": "auto", "without": ["seed"]}}
    options = {"top_p": 0.9, "seed": 3, "max_tokens": 64, "stop": ("###",), "logprobs": 2, "effort": "low"}
    request = conversation(schema=SCHEMA, **options)
    identity, reply, server = native("openai-responses", responses('{"answer": "yes"}'), request, entry=entry)
    (asked,) = server.questions

    def shown(kind, one):
        return {"type": "input_image", "image_url": f"data:image/{kind};base64,{data_of(one)}", "detail": "low"}

    one, two = frames(count=2).pictures
    assert asked.body == {
        "model": "tiny",
        "store": False,
        "input": [
            {"role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "<0.0 seconds>"},
                    shown("jpeg", one),
                    {"type": "input_text", "text": "<0.5 seconds>"},
                    shown("jpeg", two),
                    shown("png", picture(3, kind="png")),
                    {"type": "input_text", "text": "Is it red?"},
                ],
            },
            {"role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
            {"role": "user", "content": [{"type": "input_text", "text": "Sure?"}]},
        ],
        "temperature": 0.0,
        "top_p": 0.9,
        "max_output_tokens": 64,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "reply", "schema": SCHEMA, "strict": True}},
        "top_logprobs": 2,
        "include": ["message.output_text.logprobs"],
    }
    assert (reply.form, reply.ignored) == ("images", ("logprobs", "seed", "stop"))
    assert (identity.model, identity.engine) == ("tiny", "openai-responses")


def test_messages_field_by_field(native, conversation, frames, picture):
    options = {"top_k": 5, "seed": 3, "max_tokens": 64, "stop": ("###",), "logprobs": 2, "effort": "low"}
    request = conversation(schema=SCHEMA, **options)
    identity, reply, server = native("anthropic", anthropic('{"answer": "yes"}'), request, entry=EFFORT)
    (asked,) = server.questions

    def shown(kind, one):
        return {"type": "image", "source": {"type": "base64", "media_type": f"image/{kind}", "data": data_of(one)}}

    one, two = frames(count=2).pictures
    assert asked.body == {
        "model": "tiny",
        "max_tokens": 64,
        "system": "Be brief.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<0.0 seconds>"},
                    shown("jpeg", one),
                    {"type": "text", "text": "<0.5 seconds>"},
                    shown("jpeg", two),
                    shown("png", picture(3, kind="png")),
                    {"type": "text", "text": "Is it red?"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
            {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
        ],
        "temperature": 0.0,
        "top_k": 5,
        "stop_sequences": ["###"],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    }
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert (reply.form, reply.ignored) == ("images", ("logprobs", "seed"))
    assert (identity.model, identity.engine, identity.version) == ("tiny", "anthropic", "2023-06-01")


@pytest.mark.parametrize(
    ("options", "sampling", "ignored"),
    [
        ({"top_p": 0.9}, {"temperature": 0.0}, ("top_p",)),
        ({"top_p": 0.9, "temperature": None}, {"top_p": 0.9}, ()),
        ({"top_p": 1.0}, {"temperature": 0.0}, ()),
        (
            {"thinking": True, "top_k": 3, "max_tokens": 8192},
            {"thinking": {"type": "enabled", "budget_tokens": 4096}},
            ("temperature", "top_k"),
        ),
    ],
)
def test_messages_take_one_rule_of_sampling(native, ask_for, options, sampling, ignored):
    entry = {"thinking": {"mode": "switch"}}
    _, reply, server = native("anthropic", anthropic(), ask_for(**options), entry=entry)
    body = server.questions[0].body
    assert {name: body[name] for name in ("temperature", "top_p", "top_k", "thinking") if name in body} == sampling
    assert reply.ignored == ignored


def test_a_budget_must_leave_room_for_the_answer(native, ask_for):
    entry = {"thinking": {"mode": "switch"}}
    _, failed, server = native("anthropic", anthropic(), ask_for(thinking=True, max_tokens=4096), entry=entry)
    assert isinstance(failed, InputError)
    assert "raise max_tokens" in str(failed)
    assert server.questions == []
    entry["parameters"] = {"reasoning": "adaptive"}
    _, _, server = native("anthropic", anthropic(), ask_for(thinking=True, max_tokens=4096), entry=entry)
    assert server.questions[0].body["thinking"] == {"type": "adaptive"}


# --- replies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reply_with_its_tokens_and_the_key_in_its_header(native, ask_for, backend):
    header, value, path = BACKENDS[backend]
    _, reply, server = native(backend, GOOD[backend](), ask_for())
    assert (reply.text, reply.finish_reason, reply.model, reply.attempts) == ("yes", "stop", "tiny-001", 1)
    assert reply.usage == Usage(20, 7, None if backend == "anthropic" else 5, 8)
    assert reply.raw == GOOD[backend]()
    assert [one.path for one in server.asked] == ["/v1/models/tiny", path]
    assert {one.headers[header] for one in server.asked} == {value}
    assert KEY not in str(reply.raw)


def test_reasoning_is_kept_apart(native, ask_for):
    parts = [{"text": "It is", "thought": True}, {"text": " red.", "thought": True}, {"text": "yes"}]
    _, reply, _ = native("gemini", gemini(content={"parts": parts}), ask_for())
    assert (reply.text, reply.reasoning) == ("yes", "It is red.")
    body = anthropic()
    body["content"].insert(0, {"type": "thinking", "thinking": "It is red.", "signature": "x"})
    _, reply, _ = native("anthropic", body, ask_for())
    assert (reply.text, reply.reasoning) == ("yes", "It is red.")
    body = responses()
    body["output"].insert(0, {"type": "reasoning", "summary": [{"type": "summary_text", "text": "It is red."}]})
    _, reply, _ = native("openai-responses", body, ask_for())
    assert (reply.text, reply.reasoning) == ("yes", "It is red.")


def test_log_probabilities(native, ask_for):
    chances = {
        "chosenCandidates": [{"token": "yes", "logProbability": -0.5}, {"token": "."}],
        "topCandidates": [
            {"candidates": [{"token": "yes", "logProbability": -0.5}, {"token": "no", "logProbability": -1}]}
        ],
    }
    _, reply, _ = native("gemini", gemini(logprobsResult=chances), ask_for(logprobs=2))
    assert reply.logprobs == (TokenChance("yes", -0.5, {"yes": -0.5, "no": -1.0}),)
    body = responses()
    body["output"][0]["content"][0]["logprobs"] = [
        {"token": "yes", "logprob": -0.5, "top_logprobs": [{"token": "no", "logprob": -1.0}]}
    ]
    _, reply, _ = native("openai-responses", body, ask_for(logprobs=2))
    assert reply.logprobs == (TokenChance("yes", -0.5, {"no": -1.0}),)


CUT = [
    ("gemini", gemini("ye", "MAX_TOKENS")),
    ("openai-responses", responses("ye", "incomplete", incomplete_details={"reason": "max_output_tokens"})),
    ("anthropic", anthropic("ye", "max_tokens")),
]


@pytest.mark.parametrize(("backend", "body"), CUT)
def test_a_reply_that_was_cut_is_kept_and_marked(native, ask_for, backend, body):
    _, reply, _ = native(backend, body, ask_for())
    assert (reply.text, reply.finish_reason) == ("ye", "length")


REFUSED = [
    ("gemini", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
    ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}),
    ("openai-responses", responses(status="incomplete", incomplete_details={"reason": "content_filter"})),
    (
        "openai-responses",
        responses(output=[{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]),
    ),
    ("anthropic", anthropic("", "refusal")),
]


@pytest.mark.parametrize(("backend", "body"), REFUSED)
def test_a_refusal_is_not_asked_again(native, ask_for, backend, body):
    _, failed, server = native(backend, body, ask_for())
    assert isinstance(failed, ChatError)
    assert (failed.reason, len(server.questions)) == (Reason.CONTENT_FILTER, 1)


BROKEN = [
    ("gemini", {}),
    ("gemini", {"candidates": [{"finishReason": "OTHER"}]}),
    ("gemini", {"candidates": [{"content": 3}]}),
    ("openai-responses", {"status": "failed", "output": [], "error": None}),
    ("openai-responses", {"status": "completed", "output": []}),
    ("openai-responses", []),
    ("anthropic", {"content": "yes", "stop_reason": "end_turn"}),
    ("anthropic", {"content": []}),
]


@pytest.mark.parametrize(("backend", "body"), BROKEN)
def test_a_strange_answer_is_asked_again(native, ask_for, backend, body):
    _, reply, server = native(backend, [body, GOOD[backend]()], ask_for())
    assert (reply.text, reply.attempts, len(server.questions)) == ("yes", 2, 2)


OVERFLOWS = [
    ("gemini", "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."),
    ("openai-responses", "Your input exceeds the context window of this model."),
    ("anthropic", "prompt is too long: 210000 tokens > 200000 maximum"),
    ("anthropic", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
]


@pytest.mark.parametrize(("backend", "words"), OVERFLOWS)
def test_a_question_beyond_the_context(native, say, ask_for, backend, words):
    _, failed, server = native(backend, say({"error": {"message": words}}, status=400), ask_for())
    assert (failed.reason, len(server.questions)) == (Reason.CONTEXT_OVERFLOW, 1)


def test_a_reply_beyond_the_context(native, ask_for):
    _, failed, _ = native("anthropic", anthropic("", "model_context_window_exceeded"), ask_for())
    assert failed.reason is Reason.CONTEXT_OVERFLOW


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_failures_are_those_of_all_backends(native, say, ask_for, backend):
    busy = say({"error": {"message": "overloaded"}}, status=529)
    _, reply, _ = native(backend, [busy, GOOD[backend]()], ask_for())
    assert reply.attempts == 2
    _, failed, _ = native(backend, say({"error": {"message": "no"}}, status=401), ask_for())
    assert isinstance(failed, MissingPart)
    assert "NATIVE_KEY" in str(failed)


def test_gemini_says_in_its_own_way_that_a_key_is_bad_and_how_long_to_wait(native, say, ask_for):
    bad = {"error": {"message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}
    _, failed, _ = native("gemini", say(bad, status=400), ask_for())
    assert isinstance(failed, MissingPart)
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    busy = say({"error": {"message": "slow down", "details": [{"@type": "other"}, delay]}}, status=429)
    _, failed, _ = native("gemini", busy, ask_for(), limits=Limits(attempts=1))
    assert failed.retry_after == 34.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_that_is_not_there_is_named_at_the_start(native, say, ask_for, backend):
    missing = {"/v1/models/tiny": say({"error": {"message": "models/tiny is not found"}}, status=404)}
    with pytest.raises(InputError, match="models/tiny is not found"):
        native(backend, GOOD[backend](), ask_for(), pages=missing)
    down = {"/v1/models/tiny": say({"error": {"message": "down"}}, status=500)}
    with pytest.raises(MissingPart, match="cannot be asked"):
        native(backend, GOOD[backend](), ask_for(), pages=down)


@pytest.mark.parametrize("backend", ["openai-responses", "anthropic"])
def test_video_files_are_refused_where_there_is_no_place_for_them(native, ask_for, tmp_path, backend):
    clip = VideoFile(tmp_path / "clip.mp4", "0" * 64)
    _, failed, server = native(backend, GOOD[backend](), ask_for(clip))
    assert isinstance(failed, InputError)
    assert server.questions == []


def test_names_of_models_cannot_leave_their_path(native, say, ask_for):
    pages = {"/v1/models/..%2Ffiles%3Fa": say({})}
    entry = {"endpoint": {"api_key_env": "NATIVE_KEY", "served_as": "../files?a"}}
    _, _, server = native("gemini", gemini(), ask_for(), pages=pages, entry=entry)
    assert [one.path for one in server.asked] == [*pages, "/v1/models/..%2Ffiles%3Fa:generateContent"]


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clip(tmp_path):
    content = b"a video file" * 100
    (tmp_path / "clip.mov").write_bytes(content)
    return VideoFile(tmp_path / "clip.mov", hashlib.sha256(content).hexdigest(), fps=2.0)


@pytest.fixture
def files(say):
    """Pages of the Files interface; `states` are those that the file goes through, each time that it is looked at."""

    def make(*states, target="{root}/put?id=7", **more):
        left = list(states)

        def file():
            state = left.pop(0) if len(left) > 1 else left[0]
            return {"name": "files/abc", "uri": "https://files.invalid/abc", "state": state, **more}

        def start(server):
            return say({}, headers={"x-goog-upload-url": target.format(root=server.address.removesuffix("/v1"))})

        return {
            "/upload/v1/files": start,
            "/put?id=7": lambda _server: say({"file": file()}),
            "/v1/files/abc": lambda _server: say(file()),
        }

    return make


@pytest.fixture
def about(native):
    """Questions to Gemini about a file: what came of them, the server, and the waits, which are not made."""

    def run(clip, pages, count=1, **more):
        waits = []

        async def sleep(seconds):
            waits.append(seconds)

        requests = [
            ChatRequest((Message.of("user", clip, f"Question {number}?"),), Options()) for number in range(count)
        ]
        prepare = lambda client: setattr(client._uploads, "sleep", sleep)  # noqa: E731
        _, found, server = native("gemini", gemini(), *requests, pages=pages, prepare=prepare, **more)
        return found, server, waits

    return run


def test_a_file_is_handed_over_once_for_all_its_questions(about, files, clip):
    found, server, waits = about(clip, files("PROCESSING", "PROCESSING", "ACTIVE"), count=3)
    assert [(one.text, one.form) for one in found] == [("yes", "file")] * 3
    assert waits == [2.0, 2.0]
    _, start, put, *rest = server.asked
    content = clip.path.read_bytes()
    assert start.body == {"file": {"display_name": clip.sha256[:16]}}
    assert {name: start.headers[name] for name in start.headers if name.startswith("x-goog")} == {
        "x-goog-api-key": KEY,
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": str(len(content)),
        "x-goog-upload-header-content-type": "video/quicktime",
    }
    assert (put.content, put.headers["x-goog-upload-offset"]) == (content, "0")
    assert put.headers["x-goog-upload-command"] == "upload, finalize"
    assert [one.path for one in rest[:2]] == ["/v1/files/abc"] * 2
    assert [one.body["contents"][0]["parts"][0] for one in rest[2:]] == [
        {
            "fileData": {"mimeType": "video/quicktime", "fileUri": "https://files.invalid/abc"},
            "videoMetadata": {"fps": 2.0},
        }
    ] * 3


def test_without_a_rate_the_provider_chooses(about, files, clip):
    _, server, _ = about(VideoFile(clip.path, clip.sha256), files("ACTIVE"))
    assert "videoMetadata" not in server.questions[-1].body["contents"][0]["parts"][0]


def test_a_file_that_the_provider_cannot_read(about, files, clip):
    failed, _, _ = about(clip, files("FAILED", error={"message": "bad codec"}))
    assert (failed.reason, failed.retry) == (Reason.UNDECODABLE, False)
    assert "bad codec" in str(failed)


def test_a_file_that_is_never_ready(about, files, clip):
    failed, _, waits = about(clip, files("PROCESSING"), limits=Limits(attempts=1))
    assert (failed.reason, failed.retry) == (Reason.ENDPOINT_ERROR, True)
    assert 100 <= len(waits) <= 200


def test_a_file_that_is_gone(about, files, clip):
    clip.path.unlink()
    failed, _, _ = about(clip, files("ACTIVE"))
    assert failed.reason is Reason.MISSING_MEDIA


def test_an_upload_to_another_server_is_refused_because_the_key_goes_with_it(about, files, clip):
    failed, _, _ = about(clip, files("ACTIVE", target="http://elsewhere.invalid/put?id=7"))
    assert isinstance(failed, InputError)
    assert "elsewhere.invalid" in str(failed)
    assert KEY not in str(failed)


@pytest.mark.parametrize("strange", [{"uri": None}, {"name": 3}])
def test_a_strange_answer_to_an_upload(about, files, clip, strange):
    failed, _, _ = about(clip, files("ACTIVE", **strange), limits=Limits(attempts=2, first_wait=0))
    assert (failed.reason, failed.attempts) == (Reason.ENDPOINT_ERROR, 2)
