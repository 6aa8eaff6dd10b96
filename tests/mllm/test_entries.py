"""The shipped model entries, and how entries are loaded."""

import csv
from collections import Counter
from dataclasses import fields

import pytest
import yaml

from api.services.models import how_had, list_models
from api.services.weights import fetch
from gen_eval.mllm import Options, load_model, model_names
from gen_eval.mllm.entry import entry_of
from gen_eval.records import InputError
from gen_eval.registry import names

TABLES = {"pai_table5": 16, "vantage_table1": 17}
"""Published tables with the number of models in them."""


@pytest.fixture(scope="module")
def entries():
    return {name: load_model(name) for name in model_names()}


@pytest.mark.parametrize(("table", "models"), TABLES.items())
def test_every_row_of_the_published_tables_has_exactly_one_entry(goldens, entries, table, models):
    with (goldens / "papers" / f"{table}.csv").open(newline="") as lines:
        published = [line["model"] for line in csv.DictReader(lines) if line["group"] != "reference"]
    assert len(published) == models
    assert Counter(entry.rows[table] for entry in entries.values() if table in entry.rows) == Counter(published)


def test_names_and_ids_are_unique_and_rows_belong_to_known_tables(entries):
    assert all(name == entry.name for name, entry in entries.items())
    for key in ("id", "title"):
        assert not [
            value for value, count in Counter(getattr(one, key) for one in entries.values()).items() if count > 1
        ]
    assert {table for entry in entries.values() for table in entry.rows} == set(TABLES)


def test_backends_exist_and_defaults_are_options_of_decoding(entries):
    known = {field.name for field in fields(Options)}
    for entry in entries.values():
        assert entry.backend in names("gen_eval.chat"), entry.name
        assert set(entry.defaults) <= known, entry.name
        assert set(entry.parameters.get("without", ())) <= known, entry.name


def test_hosted_models_name_the_variable_of_their_key_and_hold_none(entries):
    hosted = {"gemini", "openai-responses", "anthropic"}
    asked = [entry for entry in entries.values() if entry.backend in hosted or entry.endpoint.base_url]
    assert {entry.endpoint.api_key_env for entry in asked} == {"GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    assert all(entry.size is None for entry in asked)


@pytest.mark.parametrize(
    ("name", "unit", "order", "factor", "form"),
    [
        ("qwen2.5-vl-72b", "pixel_of_input", "xyxy", 28, "video"),
        ("cosmos-reason1-7b", "pixel_of_input", "xyxy", 28, "video"),
        ("qwen3-vl-8b", "thousandths", "xyxy", 32, "video"),
        ("cosmos-reason2-8b", "thousandths", "xyxy", 32, "video"),
        ("internvl3.5-8b", "thousandths", "xyxy", None, "images"),
        ("gemini-3.6-flash", "thousandths", "yxyx", None, "file"),
        ("gemma-4-e2b", "thousandths", "yxyx", None, "images"),
        ("llava-st-7b", "bin_100", "xyxy", None, "images"),
        ("gpt-5", "fraction", "xyxy", None, "images"),
    ],
)
def test_conventions_of_the_families(entries, name, unit, order, factor, form):
    entry = entries[name]
    assert (entry.coordinates.unit, entry.coordinates.order) == (unit, order)
    assert (entry.sees.patch_factor, entry.sees.form) == (factor, form)


def test_the_embedded_default_is_free_to_use_and_is_asked_over_http_when_an_address_is_given(entries):
    entry = entries["qwen3-vl-2b"]
    assert (entry.backend, entry.commercial) == ("local", "yes")
    served = load_model("qwen3-vl-2b", endpoint="http://localhost:8000/v1", served_as="small")
    assert (served.backend, served.endpoint.base_url, served.endpoint.served_as) == (
        "http",
        "http://localhost:8000/v1",
        "small",
    )


def test_a_file_is_an_entry_of_its_name_points_included(tmp_path):
    path = tmp_path / "my-model-1.5.yaml"
    path.write_text(yaml.safe_dump({"id": "someone/model", "context": 4096}))
    entry = load_model(str(path))
    assert (entry.name, entry.title, entry.id, entry.context) == ("my-model-1.5", "my-model-1.5", "someone/model", 4096)
    assert load_model("qwen2.5-vl-7b").name == "qwen2.5-vl-7b"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "id"),
        ({"id": "x", "colour": "red"}, "colour"),
        ({"id": "x", "coordinates": {"unit": "inches"}}, "coordinates.unit"),
        ({"id": "x", "price": {"input": 1, "output": 2}}, "price.as_of"),
        ({"id": "x", "commercial": True}, "commercial"),
    ],
)
def test_a_malformed_entry_is_refused_with_the_field(content, told):
    with pytest.raises(InputError, match=f"'mine' cannot be used: .*{told}"):
        entry_of("mine", content)


def test_a_manifest_holds_neither_address_nor_price_nor_key():
    recorded = entry_of("mine", {"id": "x"}, endpoint="http://secret.example/v1").to_json()
    assert not {"endpoint", "price"} & set(recorded)
    assert "secret" not in str(recorded)


def test_licences_are_listed_and_fetching_says_how_a_model_is_had():
    listed = {one["name"]: one for one in list_models()}
    assert listed["qwen2.5-vl-7b"]["licence"] == "Apache-2.0"
    assert listed["eagle2.5-8b"]["commercial"] == "no"
    for name, told in (
        ("qwen3-vl-2b", "transformers"),
        ("qwen3-vl-8b", "vllm serve Qwen/Qwen3-VL-8B-Instruct"),
        ("gpt-4o", "OPENAI_API_KEY"),
        ("gemini-3.1-pro", "GEMINI_API_KEY"),
    ):
        assert told in how_had(name)
        with pytest.raises(InputError, match="not fetched by this command"):
            fetch([name])
