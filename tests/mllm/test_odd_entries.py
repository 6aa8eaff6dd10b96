"""Model entries from strangers: every mistake is named, and no message repeats what may be a key."""

import pytest

from gen_eval.mllm import load_model
from gen_eval.mllm.asking import open_client
from gen_eval.mllm.entry import entry_of
from gen_eval.records import InputError
from judge.entry import load_judge

KEY = "sk-1234567890"


@pytest.mark.parametrize("endpoint", ["http://host", ["http://host"], 5, True])
def test_an_endpoint_is_a_mapping(endpoint):
    with pytest.raises(InputError, match="endpoint must be a mapping"):
        entry_of("m", {"id": "m", "endpoint": endpoint})


@pytest.mark.parametrize(
    "address",
    [
        "http://h/v1\r\nX: y",
        "http://h /v1",
        "http://h\u202e/v1",
        "http://[::1/v1",
        "http://h:99999/v1",
        "file:///x",
        "h/v1",
    ],
)
def test_an_address_is_plain(address):
    with pytest.raises(InputError, match="must be http"):
        open_client(entry_of("m", {"id": "m"}, endpoint=address))


@pytest.mark.parametrize(
    "content",
    [
        {"endpoint": {"api_key": KEY}},
        {"endpoint": {"api_key_env": KEY}},
        {"endpoint": {"base_url": [KEY]}},
        {"api_key": KEY},
        {"endpoint": {"base_url": f"http://u:{KEY}@h/v1"}},
        {"endpoint": {"base_url": f"http://u:{KEY}@h:99999/v1"}},
        {"endpoint": {"base_url": f"http://h/v1?key={KEY}"}},
        {"endpoint": {"base_url": f"http://[h/v1?key={KEY}"}},
        {"endpoint": {"base_url": f"http://h/v1#{KEY}"}},
        {"id": None, "endpoint": {"api_key_env": "K", "base_url": "http://h", "key": KEY}},
    ],
)
def test_no_message_repeats_a_key(content):
    with pytest.raises(InputError) as refused:
        open_client(entry_of("m", {"id": "m", **content}))
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("text", [f"title: x\napi_key: {KEY}\n", f"model: {{id: m}}\napi_key: {KEY}\n"])
@pytest.mark.parametrize("load", [load_model, load_judge])
def test_nor_does_that_about_a_missing_or_unknown_field(tmp_path, text, load):
    path = tmp_path / "entry.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        load(str(path))
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("text", ["id: " + "[" * 3000, "id: m\nprice: {input: 1, output: 1, as_of: 2025-13-45}\n"])
def test_yaml_that_its_reader_breaks_on_is_named(tmp_path, text):
    path = tmp_path / "entry.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match="cannot be read as YAML"):
        load_model(str(path))
