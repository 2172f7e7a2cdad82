"""The names other programs are written against. Adding one is a decision, removing one a breaking change."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import sparsemean as sm
from sparsemean import errors
from sparsemean.run.text import known_members

PUBLIC = [
    "CheckFailed",
    "Client",
    "Clip",
    "ConflictingPayload",
    "Correlation",
    "CsvReports",
    "DamagedJournal",
    "Decoder",
    "Difference",
    "DivergenceWarning",
    "Encoder",
    "ErrorFeedback",
    "Estimate",
    "ForeignJournal",
    "ForeignPayload",
    "Hybrid",
    "Identity",
    "IncompatibleScheme",
    "Induced",
    "InvalidInput",
    "JournalError",
    "Layers",
    "Lazy",
    "MalformedPayload",
    "Mean",
    "Memory",
    "NonFiniteValues",
    "Offset",
    "OneOf",
    "OutOfStep",
    "PayloadError",
    "PerNode",
    "PrometheusReports",
    "RTopK",
    "RandK",
    "Receipt",
    "RoundFull",
    "RoundReport",
    "Run",
    "Scheme",
    "Server",
    "Shared",
    "SharedStable",
    "SparseMeanError",
    "Spatial",
    "TensorBoardReports",
    "TooFewNodes",
    "TopK",
    "Wangni",
    "Window",
    "WrongRound",
    "__version__",
    "estimate_mean",
    "named",
    "names",
    "simulate",
    "theory",
]

# What sparsemean.core exported before it became sparsemean.extending, and what of that has no equivalent now.
FORMER_CORE = """
DITHER GROUP LARGEST_SCALE LEAST_RATIO RANKED STRIDE Arrival Belief Blocks Decoded Decoder Doubles Encoder
EncoderFacts Journal Key Layout Levels Memory MemoryFacts Nothing Offer Part Payload Recollection Record
RoundTotals Rounds Sample Setting Shelf State Stateful Summary Taken Tree Words array_in below block_size
branch coordinates coordinates_between count_given_sent fingerprint journal_folder kept open_frame pack places
places_of read_payload read_tree rebuilt sample_of shuffle_words stream_index stream_of stream_word written
"""
GONE_FROM_CORE = {"Decoded", "Rounds", "rebuilt"}


def test_exported_names_are_these():
    assert sorted(PUBLIC) == PUBLIC
    assert sorted(sm.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_exported_name_exists(name):
    assert getattr(sm, name) is not None


@pytest.mark.parametrize(
    ("owner", "members"),
    [
        (sm.Run, "scheme dim seed blocks digest to_json from_json payload_bytes"),
        (sm.Client, "encode delivered reset save restore"),
        (sm.Server, "accept close_round skip_round forget digest"),
        (sm.Estimate, "mean round nodes counts bytes error error_se correlation"),
        (sm.Receipt, "node round digest"),
        (sm.Scheme, "encoder decoder memory values unbiased node_state"),
        (sm.theory, "spatial_mse temporal_mse correlation share_for_error"),
    ],
)
def test_designed_members_exist(owner, members):
    fields = {*dir(owner), *getattr(owner, "__dataclass_fields__", ())}
    assert not set(members.split()) - fields


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (sm.Scheme, "encoder decoder memory values"),
        (sm.Run, "scheme dim seed blocks"),
        (sm.Client, "run node"),
        (sm.Client.encode, "self vector round"),
        (sm.Server, "run missing"),
        (sm.Server.accept, "self node blob weight"),
        (sm.Server.close_round, "self minimum"),
        (sm.named, "name k"),
        (sm.estimate_mean, "vectors scheme seed"),
        (sm.simulate, "run vectors"),
    ],
)
def test_designed_arguments_come_in_this_order(function, parameters):
    wanted = parameters.split()
    assert list(inspect.signature(function).parameters)[: len(wanted)] == wanted


def test_every_error_hangs_on_the_one_tree():
    raised = [thing for thing in vars(errors).values() if inspect.isclass(thing) and issubclass(thing, Exception)]
    warnings = [thing for thing in raised if issubclass(thing, Warning)]
    assert warnings == [sm.DivergenceWarning]
    for error in raised:
        if error not in warnings:
            assert issubclass(error, sm.SparseMeanError)
            assert getattr(sm, error.__name__) is error
            assert error.__name__ in (errors.__doc__ or "")
    for refusal in ("Malformed", "Foreign", "Conflicting"):
        assert issubclass(getattr(sm, f"{refusal}Payload"), sm.PayloadError)
    for error in (sm.WrongRound, sm.NonFiniteValues, sm.OutOfStep):
        assert issubclass(error, sm.PayloadError)
    assert issubclass(sm.InvalidInput, ValueError)


def test_the_former_name_of_extending_still_serves_and_says_the_new_one():
    script = "import sparsemean.core as core, sparsemean.extending as new; assert core.Encoder is new.Encoder"
    done = subprocess.run([sys.executable, "-W", "always", "-c", script], capture_output=True, text=True, check=True)
    assert "sparsemean.core is now sparsemean.extending" in done.stderr


@pytest.mark.filterwarnings(r"ignore:sparsemean\.core\.\w+ is now:DeprecationWarning")
@pytest.mark.parametrize("name", FORMER_CORE.split())
def test_every_former_name_of_core_works_or_is_gone_with_a_remedy(name):
    core = importlib.import_module("sparsemean.core")
    if name in GONE_FROM_CORE:
        with pytest.raises(AttributeError, match=rf"core\.{name} is gone; .*sparsemean\."):
            getattr(core, name)
    else:
        assert getattr(core, name) is not None
        assert name in core.__all__


@pytest.mark.parametrize(
    ("former", "now"),
    [("Recollection", "MemoryState"), ("Setting", "MemorySpec"), ("Offer", "Submission"), ("Taken", "Acceptance")],
)
def test_a_former_name_of_core_is_the_new_thing_and_warns(former, now):
    core = importlib.import_module("sparsemean.core")
    with pytest.warns(DeprecationWarning, match=rf"core\.{former} is now sparsemean\..*\.{now}"):
        assert getattr(core, former).__name__ == now


def test_the_former_coordinates_of_core_take_a_run():
    core = importlib.import_module("sparsemean.core")
    run = sm.Run(sm.named("rand-k", k=6), dim=10_000)
    found, first = core.coordinates(run, "a", 0, 4096, 8192)
    wanted, place = run.coordinates("a", 0, lo=4096, hi=8192)
    assert (found.tolist(), first) == (wanted.tolist(), place)


def test_whatever_a_package_of_members_exports_can_be_read_back():
    kinds = [member for member in map(sm.__dict__.get, sm.__all__) if isinstance(member, type)]
    members = {kind.__name__ for kind in kinds if issubclass(kind, sm.Encoder | sm.Decoder | sm.Memory)}
    assert {"RandK", "Spatial", "PerNode"} < members
    assert members - {"Encoder", "Decoder", "Memory"} <= known_members().keys()


def test_a_formula_that_was_renamed_is_found_by_its_former_name():
    with pytest.warns(DeprecationWarning, match="shrunk_correlation"):
        assert vars(sm)["theory"].shrunk_likeness is sm.theory.shrunk_correlation
    assert not hasattr(sm.theory, "nothing_of_that_name")


def test_what_completion_offers_is_what_programs_use():
    assert dir(sm.theory) == sorted(sm.theory.__all__)
    offered = dir(sm)
    assert set(PUBLIC) | {"Auto", "Balanced", "SchemeName", "ValueName"} <= set(offered)
    assert [name for name in offered if inspect.ismodule(getattr(sm, name))] == ["theory"]
