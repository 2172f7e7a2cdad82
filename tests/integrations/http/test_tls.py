"""TLS: a service that nobody vouches for is not spoken to, and a certificate says who a node is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.integrations.http import HttpNode, NotAdmitted, Unreachable
from sparsemean.integrations.http.service.tokens import Tokens

from .serving import START, Service

pytestmark = pytest.mark.xdist_group("http")

RUN = sm.Run(sm.named("rand-k", k=10), dim=100, seed=1)


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def authority(folder: Path, name: str) -> None:
    files = ("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    may = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign")
    openssl("req", "-x509", *NEW_KEY, "-days", 2, "-subj", f"/CN={name}", *files, *may)


def signed(folder: Path, by: str, name: str, file: str) -> None:
    request, more = folder / f"{file}.csr", folder / f"{file}.ext"
    more.write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    openssl("req", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", folder / f"{file}.key", "-out", request)
    signer = ("-CA", folder / f"{by}.pem", "-CAkey", folder / f"{by}.key", "-CAcreateserial")
    openssl("x509", "-req", "-in", request, *signer, "-days", 2, "-extfile", more, "-out", folder / f"{file}.pem")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    for name in ("ours", "theirs"):
        authority(made, name)
    signed(made, "ours", "service", "service")
    signed(made, "ours", "station", "station")
    signed(made, "theirs", "station", "impostor")
    return made


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    tls = (
        "--tls-cert",
        folder / "service.pem",
        "--tls-key",
        folder / "service.key",
        "--client-ca",
        folder / "ours.pem",
    )
    made = Service(folder, RUN, ("--wanted", 1, *tls), scheme="https")
    Tokens(folder / "tokens.json").add_certificate("station", weight=2.0)
    try:
        made.start(ready=lambda: None)  # nodes wait for it
        yield made
    finally:
        made.end()


def test_a_token_over_tls(service, folder):
    with HttpNode(service.url, service.tokens["a"], authority=folder / "ours.pem") as node:
        receipt = node.send(np.ones(100))
        heard = node.mean(receipt.round)
    assert heard is not None
    assert heard.round == receipt.round


def test_a_certificate_says_who_a_node_is(service, folder):
    own = {"certificate": folder / "station.pem", "key": folder / "station.key"}
    with HttpNode(service.url, authority=folder / "ours.pem", **own) as node:
        assert node.name == "station"
        assert node.send(np.ones(100)).node == "station"


def test_a_certificate_that_another_authority_signed(service, folder):
    own = {"certificate": folder / "impostor.pem", "key": folder / "impostor.key"}
    with HttpNode(service.url, authority=folder / "ours.pem", patience=1.0, **own) as node, pytest.raises(Unreachable):
        _ = node.name


def test_nobody_is_let_in_without_either(service, folder):
    with HttpNode(service.url, authority=folder / "ours.pem") as node, pytest.raises(NotAdmitted):
        _ = node.name


def test_a_service_of_an_unknown_authority_is_not_spoken_to(service, folder):
    for known in (None, folder / "theirs.pem"):
        with (
            HttpNode(service.url, service.tokens["a"], authority=known, patience=START) as node,
            pytest.raises(sm.InvalidInput, match="not trusted"),
        ):
            _ = node.name


def test_without_tls_only_this_machine_hears(tmp_path, folder):
    service = Service(tmp_path, RUN, ("--wanted", 1))
    code, said = service.refused("--listen", "0.0.0.0:0")
    assert code == 2
    assert "--tls-cert" in said
    with pytest.raises(sm.InvalidInput, match="https://"):
        HttpNode("http://means.example:8443", "a.b")
    HttpNode("http://means.example:8443", "a.b", insecure=True).close()
