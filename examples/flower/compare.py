"""Run the app dense and compressed in Flower's simulation, and draw both: python examples/flower/compare.py."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

APP = Path(__file__).resolve().parent
BIN = Path(sysconfig.get_path("scripts"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--dataset", default="auto", help="fashion-mnist, digits, or auto: the first that is found")
    parser.add_argument("--rate", type=float, default=0.1, help="of the nodes' gradient descent")
    parser.add_argument("--scheme", default="auto")
    parser.add_argument("--k", type=float, default=0.012)
    parser.add_argument("--values", default="", help="such as int8; auto chooses")
    parser.add_argument("--home", type=Path, help="where Flower keeps its files; gone afterwards where left out")
    parser.add_argument("--out", type=Path, default=Path("flower.png"), help="the plot; the figures go beside it")
    options = parser.parse_args()
    compressed = f'scheme="{options.scheme}" k={options.k} values="{options.values}"'
    found = {}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as fleeting,
        superlink(options.home or Path(fleeting), fleeting) as environment,
    ):
        for name, setting in {"dense": 'scheme="dense"', "compressed": compressed}.items():
            results = Path(fleeting, f"{name}.json")
            common = f'dataset="{options.dataset}" rounds={options.rounds} rate={options.rate} results="{results}"'
            run(f"{setting} {common}", options.nodes, environment)
            if not results.exists():  # flwr run ends well whatever becomes of the app
                sys.exit(f"the {name} run failed; its log is above")
            found[name] = json.loads(results.read_text())
    print_table(found)
    options.out.with_suffix(".json").write_text(json.dumps(found))
    plot(found, options.out, ", ".join(filter(None, (options.scheme, f"k = {options.k:g}", options.values))))


@contextmanager
def superlink(home: Path, fleeting: str) -> Iterator[dict[str, str]]:
    """A SuperLink of our own for simulations, gone afterwards; ``flwr run`` alone would leave one running."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "own"\n[superlink.own]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    environment = {
        **os.environ,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        **({"RAY_TMPDIR": fleeting} if sys.platform == "linux" else {}),  # elsewhere its paths are too long for sockets
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    flags = ["--insecure", "--simulation", "--port", str(port), "--disable-runtime-dependency-installation"]
    with (home / "superlink.log").open("wb") as log:
        process = subprocess.Popen([BIN / "flower-superlink", *flags], env=environment, stdout=log, stderr=log)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None:
                    sys.exit(f"the SuperLink did not start:\n{(home / 'superlink.log').read_text()}")
                time.sleep(0.2)
        yield environment
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(setting: str, nodes: int, environment: dict[str, str]) -> None:
    federation = f"num-supernodes={nodes} client-resources-num-cpus=1"
    flags = ["--stream", "--run-config", setting, "--federation-config", federation]
    subprocess.run([BIN / "flwr", "run", APP, "own", *flags], env=environment, check=True)


def print_table(found: dict) -> None:
    dense, ours = found["dense"], found["compressed"]
    print(f"\n{dense['dataset']}\nround   accuracy dense, compressed   bytes up dense, compressed")
    for at, (a, b) in enumerate(zip(dense["accuracy"], ours["accuracy"], strict=True)):
        up = "" if at == 0 else f"{dense['bytes'][at - 1]:15,d} {ours['bytes'][at - 1]:11,d}"
        print(f"{at:5d} {a:16.4f} {b:11.4f} {up}")
    factor = sum(dense["bytes"]) / sum(ours["bytes"])
    print(f"Data: {dense['attribution']}")
    print(f"{factor:.1f} times fewer bytes up, accuracy {ours['accuracy'][-1] - dense['accuracy'][-1]:+.4f}")


def plot(found: dict, path: Path, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, (by_round, by_bytes) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for (name, rows), style in zip(found.items(), ("o-", "s--"), strict=True):
        rounds = range(1, len(rows["accuracy"]))
        sent = [sum(rows["bytes"][:at]) / 1e6 for at in rounds]
        by_round.plot(rounds, rows["accuracy"][1:], style, label=name, markersize=4)
        by_bytes.plot(sent, rows["accuracy"][1:], style, label=name, markersize=4)
    by_round.set(xlabel="round", ylabel="test accuracy", title=f"{found['dense']['dataset']}: {title}")
    by_round.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    by_bytes.set(xlabel="MB sent by all nodes", xscale="log", title="for the bytes it takes")
    by_round.legend()
    figure.savefig(path, dpi=150)
    print(f"plot: {path}")


if __name__ == "__main__":
    main()
