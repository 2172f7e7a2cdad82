"""A user's own files: every format gives the same vectors, and what is wrong is named with file and place."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import Reading, Stream, csv_rows, load, vectors
from sparsemean.lab.datasets.rows import arranged

pyarrow: Any = import_module("pyarrow")  # it has no type stubs
parquet: Any = import_module("pyarrow.parquet")

ROUNDS = np.random.default_rng(0).normal(size=(2, 3, 4))


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path, told: str) -> None:
    """Loading fails, names the file, and says ``told``."""
    with pytest.raises(InvalidInput) as raised:
        vectors.load(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert told in message, message


def check(stream: Stream, expected) -> None:
    assert stream.vectors.dtype == np.float64
    assert np.array_equal(stream.vectors, expected)


class TestArrays:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint64, ">f8"])
    def test_npy_of_any_real_type(self, tmp_path, dtype) -> None:
        array = np.round(ROUNDS * 10).clip(0).astype(dtype)
        np.save(tmp_path / "x.npy", array)
        stream = vectors.load(tmp_path / "x.npy")
        check(stream, array)
        assert stream.name == "x.npy"
        assert stream.nodes == ("node-0", "node-1", "node-2")

    def test_two_axes_are_one_round(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", ROUNDS[0])
        check(vectors.load(str(tmp_path / "x.npy")), ROUNDS[:1])
        assert np.array_equal(vectors.load(tmp_path / "x.npy").vectors, ROUNDS[:1])

    def test_the_order_in_memory_does_not_matter(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", np.asfortranarray(ROUNDS))
        check(vectors.load(tmp_path / "x.npy"), ROUNDS)

    def test_npz_with_one_array_or_one_called_vectors(self, tmp_path) -> None:
        np.savez(tmp_path / "one.npz", anything=ROUNDS)
        np.savez_compressed(tmp_path / "two.NPZ.npz", other=np.zeros(3), vectors=ROUNDS)
        check(vectors.load(tmp_path / "one.npz"), ROUNDS)
        check(vectors.load(tmp_path / "two.NPZ.npz"), ROUNDS)

    def test_the_ending_may_be_in_capitals(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", ROUNDS)
        check(vectors.load((tmp_path / "x.npy").rename(tmp_path / "X.NPY")), ROUNDS)

    def test_the_result_does_not_hang_on_the_file(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", ROUNDS)
        loaded = vectors.load(tmp_path / "x.npy").vectors
        loaded += 1
        check(vectors.load(tmp_path / "x.npy"), ROUNDS)

    def test_npz_with_several_arrays_names_them(self, tmp_path) -> None:
        np.savez(tmp_path / "x.npz", a=ROUNDS, b=ROUNDS)
        refused(tmp_path / "x.npz", "holds 2 arrays (a, b); say which one, as in --array a (array='a')")

    def test_npz_without_arrays(self, tmp_path) -> None:
        np.savez(tmp_path / "x.npz")
        refused(tmp_path / "x.npz", "holds 0 arrays")

    @pytest.mark.parametrize("shape", [(), (5,), (1, 2, 3, 4)])
    def test_the_wrong_number_of_axes(self, tmp_path, shape) -> None:
        np.save(tmp_path / "x.npy", np.ones(shape))
        told = f"has shape {shape}; reshape it to (nodes, coordinates) or (rounds, nodes, coordinates)"
        refused(tmp_path / "x.npy", told)

    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 2, 3), (2, 0, 3)])
    def test_nothing_in_it(self, tmp_path, shape) -> None:
        np.save(tmp_path / "x.npy", np.ones(shape))
        refused(tmp_path / "x.npy", f"holds no numbers: its shape is {shape}")

    @pytest.mark.parametrize(
        ("array", "remedy"),
        [
            (np.array([["a"]]), "convert it with .astype(float)"),
            (np.ones((2, 2), bool), "convert it with .astype(float)"),
            (np.ones((2, 2), complex), "np.concatenate([x.real, x.imag], axis=-1)"),
            (np.ones(2, [("x", "f8"), ("y", "f8")]), "structured_to_unstructured(x)"),
        ],
    )
    def test_other_things_than_real_numbers(self, tmp_path, array, remedy: str) -> None:
        np.save(tmp_path / "x.npy", array)
        refused(tmp_path / "x.npy", f"holds {array.dtype}, not real numbers; ")
        refused(tmp_path / "x.npy", remedy)

    def test_nothing_is_unpickled(self, tmp_path) -> None:
        objects = np.array([[1.0, None]], dtype=object)
        np.save(tmp_path / "x.npy", objects, allow_pickle=True)
        np.savez(tmp_path / "x.npz", vectors=objects, allow_pickle=True)
        for name in ("x.npy", "x.npz"):
            refused(tmp_path / name, "holds Python objects, which are never unpickled; save numbers: np.save(")

    @pytest.mark.parametrize(
        ("place", "value", "told"),
        [
            (
                (1, 2, 3),
                np.nan,
                "1 of 24 numbers are missing (empty, NA or NaN), the first at round 1, node 2, coordinate 3 (",
            ),
            (
                (0, slice(1, 3), 0),
                -np.inf,
                "2 of 24 numbers are infinite, the first (-inf) at round 0, node 1, ",
            ),
        ],
    )
    def test_numbers_that_are_none(self, tmp_path, place, value: float, told: str) -> None:
        array = ROUNDS.copy()
        array[place] = value
        np.save(tmp_path / "x.npy", array)
        refused(tmp_path / "x.npy", told)
        refused(tmp_path / "x.npy", "--missing ")

    def test_in_one_round_the_place_is_node_and_coordinate(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", np.array([[1, 2], [np.inf, 3]]))
        refused(tmp_path / "x.npy", "1 of 4 numbers are infinite, the first (inf) at node 1, coordinate 0 (counted")

    @pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="long double is double here")
    def test_numbers_too_large_for_a_double_are_refused(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", np.full((2, 2), np.finfo(np.longdouble).max))
        refused(tmp_path / "x.npy", "4 of 4 numbers are infinite")

    @pytest.mark.parametrize("name", ["x.npy", "x.npz"])
    @pytest.mark.parametrize("content", [b"", b"garbage", b"\x93NUMPY\x01", b"PK\x03\x04broken", bytes(1000)])
    def test_what_cannot_be_read(self, tmp_path, name: str, content: bytes) -> None:
        refused(write(tmp_path / name, content), "is no array of numbers as NumPy saves them (")

    @pytest.mark.parametrize("name", ["x.npy", "x.npz"])
    def test_truncated_files(self, tmp_path, name: str) -> None:
        path = tmp_path / name
        (np.save if name == "x.npy" else np.savez)(path, ROUNDS)
        content = path.read_bytes()
        for size in range(0, len(content), 13):
            refused(write(path, content[:size]), "is no array of numbers as NumPy saves them (")

    def test_a_header_that_declares_too_much_takes_no_memory(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", ROUNDS)
        forged = (tmp_path / "x.npy").read_bytes().replace(b"(2, 3, 4), }        ", b"(2000000, 3000, 400)}")[:-1]
        refused(write(tmp_path / "x.npy", forged), "is no array of numbers as NumPy saves them (")


class TestCsv:
    def load(self, folder: Path, text: str | bytes) -> Stream:
        return vectors.load(write(folder / "x.csv", text))

    def refused(self, folder: Path, text: str | bytes, told: str) -> None:
        refused(write(folder / "x.csv", text), told)

    def test_one_line_per_node(self, tmp_path) -> None:
        stream = self.load(tmp_path, "1,2.5\n-3e2,4\n5, 6 \n")
        check(stream, [[[1, 2.5], [-300, 4], [5, 6]]])
        assert stream.nodes == ("node-0", "node-1", "node-2")

    @pytest.mark.parametrize(
        "text", ["x,y\n1,2\n3,4", "\ufeffx,y\r\n\r\n1,2\r\n3,4\r\n", '"x, too",y\n"1",2\n3,4\n \n']
    )
    def test_a_line_of_names_is_a_header(self, tmp_path, text: str) -> None:
        check(self.load(tmp_path, text), [[[1, 2], [3, 4]]])

    @pytest.mark.parametrize("text", ["# made by\n\n#\nx,y\n1,2\n3,4\n", "# x y\n1 2\n3 4\n", "#,x,y\n0,1,2\n1,3,4\n"])
    def test_comments_at_the_top_are_skipped(self, tmp_path, text: str) -> None:
        check(self.load(tmp_path, text), [[[1, 2], [3, 4]]])

    def test_a_column_node_names_the_nodes(self, tmp_path) -> None:
        stream = self.load(tmp_path, "0,Node,1\n1,Brest,2\n3,Île-de-Bréhat,4\n")
        check(stream, [[[1, 2], [3, 4]]])
        assert stream.nodes == ("Brest", "Île-de-Bréhat")

    def test_rounds_ascend_and_nodes_keep_their_first_order(self, tmp_path) -> None:
        stream = self.load(tmp_path, "round,node,x\n10,b,1\n9,a,2\n10,a,3\n9,b,4\n")
        check(stream, [[[4], [2]], [[1], [3]]])
        assert stream.nodes == ("b", "a")

    @pytest.mark.parametrize(
        ("text", "vectors_read", "told"),
        [
            ("0,1,2\n5,6,7\n8,9,1\n", [[5, 6, 7], [8, 9, 1]], "line 1, which counts 0, 1, 2, …, was read as pandas'"),
            ("0\n5\n8\n", [[5], [8]], "line 1, which counts"),
            (",0,1\n0,5,6\n1,8,9\n", [[5, 6], [8, 9]], "the first column, which has no name and counts lines"),
            (",x,y\n0,5,6\n1,8,9\n", [[5, 6], [8, 9]], "the first column, which has no name"),
            (",node,x\n0,a,5\n1,b,8\n", [[5], [8]], "the first column, which has no name"),
            ('"","V1"\n"1",5\n"2",8\n', [[5], [8]], "the first column, which has no name and counts lines"),  # R's
            ("index,x\n0,5\n1,8\n", [[5], [8]], "the first column, which is named 'index' and counts lines"),
            ("id,x\n17,5\n4,8\n", [[5], [8]], "the first column, which is named 'id', was read as the names of the"),
            (",0,1\n0,5,6\n2,8,9\n", [[5, 6], [8, 9]], "the first column, which has no name, was read as the names"),
            (",x\nBrest,5\nÉtel,8\n", [[5], [8]], "the first column, which has no name, was read as the names"),
            (",0\n2024-01-01,5\n2024-01-02,8\n", [[5], [8]], "column 1 (without a name) holds dates or times, and was"),
            ("time,0,1\n1 ,5,6\n2,8,9\n", [[5, 6], [8, 9]], "column 'time' holds dates or times, and was left out"),
            ("x,y,\n5,6,\n8,9,\n", [[5, 6], [8, 9]], "1 column without a name or any number left out"),
        ],
    )
    def test_what_pandas_adds_of_its_own_is_no_data_and_that_is_said(self, tmp_path, text, vectors_read, told) -> None:
        """The texts are those of to_csv(index=False), and of to_csv() by default."""
        stream = self.load(tmp_path, text)
        check(stream, [vectors_read])
        assert stream.note.startswith(told)
        assert "\n" not in stream.note

    @pytest.mark.parametrize("text", ["1,2,3\n4,5,6\n", "0,2,1\n4,5,6\n", "0.0,1.0\n2,3\n", "x,y\n1,2\n3,4\n"])
    def test_other_first_lines_are_what_they_were(self, tmp_path, text: str) -> None:
        stream = self.load(tmp_path, text)
        assert stream.note == ""
        assert stream.vectors.shape[1] == text.count("\n") - text.startswith("x")

    def test_either_reading_of_the_first_line_can_be_had(self, tmp_path) -> None:
        path = write(tmp_path / "x.csv", "0,1,2\n5,6,7\n7,8,9\n")
        for header, expected in ((False, [[[0, 1, 2], [5, 6, 7], [7, 8, 9]]]), (True, [[[5, 6, 7], [7, 8, 9]]])):
            stream = vectors.load(path, Reading(header=header))
            check(stream, expected)
            assert stream.note == ""
        write(path, "3,4\n5,6\n")
        check(vectors.load(path, Reading(header=True)), [[[5, 6]]])
        write(path, "x,y\n5,6\n")
        with pytest.raises(InvalidInput, match="'x' is not a number"):
            load(path, header=False)

    def test_only_csv_files_are_asked_for_a_header(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", ROUNDS)
        for header in (True, False):
            with pytest.raises(InvalidInput, match=r"--header \(header=\) is for \.csv, \.tsv, \.txt files"):
                load(tmp_path / "x.npy", header=header)
            with pytest.raises(InvalidInput, match="is a data set"):
                load("weather", header=header)

    @given(arrays(np.float64, (2, 3, 2), elements=st.floats(allow_nan=False, allow_infinity=False)), st.randoms())
    def test_numbers_survive_in_any_order_of_lines(self, array, random) -> None:
        rows = [
            (2 + i, [str(t), f"n{n}", *map(repr, array[t, n].tolist())]) for i, (t, n) in enumerate(np.ndindex(2, 3))
        ]
        random.shuffle(rows)
        lines = [(1, ["round", "node", "x", "y"]), *rows]
        content = arranged(csv_rows.rows_in(lambda: lines, Path("x.csv"), Reading()))
        order = [content.nodes.index(f"n{n}") for n in range(3)]
        assert np.array_equal(content.vectors[:, order], array)

    @pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", " \n"])
    def test_an_empty_file(self, tmp_path, text: str) -> None:
        self.refused(tmp_path, text, "holds no numbers: the file is empty")

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("x,y\n", "holds no numbers: 0 rows, 2 coordinates"),
            ("node\na\nb\n", "holds no numbers: 2 rows, 0 coordinates"),
            ("1,2\n3\n", ": line 2 has 1 cell, the first line has 2"),
            ("x,y\n1,2,\n", ": line 2 has 3 cells, the last one empty, the first line has 2"),
            ("x,y\n\n1,2\n3,4,5\n", ": line 4 has 3 cells, the first line has 2"),
            ("1,2\n3,\n", ": 1 of 4 numbers are missing (empty, NA or NaN), the first at line 2, column 2; say what"),
            ("1,2\n3,NA\n", ": 1 of 4 numbers are missing (empty, NA or NaN), the first at line 2, column 2; say what"),
            ("node,x\na,1\nb,c\n", ": line 3, column 'x': 'c' is not a number; if the column names the nodes, say so"),
            ("1,2\nnan,4\n-inf,5\n", ": 1 of 6 numbers are infinite, the first (-inf) at line 3, column 1; correct"),
            ("node,x\n\na,1\nb,1e999\n", ": 1 of 2 numbers are infinite, the first (inf) at line 4, column 'x';"),
            (
                "a,1,2\nb,3,4\n",
                ": line 1 mixes numbers and text (a, 1, 2…); if it holds names, say --header; if not, --no-",
            ),
            (",2,3\n4,5,6\n", ": line 1 begins with an empty cell; say --header if it holds names, --no-header if"),
            ('x,y\n"1,234.5",2\n', ": line 2, column 'x': '1,234.5' has a separator of thousands; export the numbers"),
            ("x;y\n1.234,5;2\n", ": line 2, column 'x': '1.234,5' has a separator of thousands; export the numbers"),
            ('x,y\n"1,234","2,345"\n', ": the comma in '1,234' and all others may be a decimal mark or separate thous"),
            ("x;y\n1,5;2.5\n", ": line 2, column 'y': '2.5' has a decimal point and others a decimal comma; write all"),
            ("x,y\n12%,2\n", ": line 2, column 'x': '12%' has a unit; export the numbers alone"),
            ("x,y\n1,2\n2024-01-01,2\n", ": line 3, column 'x': '2024-01-01' is a date, not a number"),
            ("NA,NA\n1,2\n", ": line 1 is no header, since its names are not distinct, nor are they numbers"),
            ("node,Node\na,2\n", ": line 1 is no header, since its names are not distinct"),
            (
                "round,x\n0,1\n",
                " has a column of rounds but none of nodes; add one called node, or name it with --node",
            ),
            ("round,node,x\n0,a,1\n0.5,b,2\n", ": line 3: the round must be a whole number or a date such as"),
            (
                "round,node,x\n0,a,1\n2024-01-01,b,2\n",
                ": some rounds are whole numbers, others dates; write all in one",
            ),
            ("node,x\na,1\n ,2\n", ": line 3: the node has no name"),
            ("round,node,x\n0,a,1\n0,b,1\n0,a,2\n", ": round 0 has the node 'a' twice, at line 2 and line 4"),
            ("node,x\na,1\na,1\n", ": round 0 has the node 'a' twice, at line 2 and line 3"),
            (
                "round,node,x\n0,a,1\n0,b,1\n7,b,2\n",
                ", the first at round 7, which has no row for the node 'a'; say what to do",
            ),
            ('1,"2\n', " cannot be read as lines of cells (unexpected end of data)"),
            (
                "t,x,y\n,°C,%\n1,2,3\n",
                ": line 2, the first below the names, holds no numbers but '°C'; if it",
            ),
            (
                "x,y\n---,---\n1,2\n",
                ": line 2, the first below the names, holds no numbers but '---'; if it",
            ),
            ("# by\n\n#\nx,y\n1,a\n", ": line 5, column 'y': 'a' is not a number"),
            (b"1,\xff\n", " cannot be read as UTF-8 text ('utf-8' codec can't decode"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, text: str | bytes, told: str) -> None:
        self.refused(tmp_path, text, told)


class TestParquet:
    def write(self, folder: Path, **columns) -> Path:
        parquet.write_table(pyarrow.table(columns), folder / "x.parquet")
        return folder / "x.parquet"

    def test_one_row_per_node(self, tmp_path) -> None:
        path = self.write(tmp_path, x=[1.5, 2.0], y=pyarrow.array([3, 4], pyarrow.int8()))
        stream = vectors.load(path)
        check(stream, [[[1.5, 3], [2, 4]]])
        assert stream.nodes == ("node-0", "node-1")

    def test_rounds_ascend_and_nodes_keep_their_first_order(self, tmp_path) -> None:
        path = self.write(tmp_path, x=[1.0, 2.0, 3.0, 4.0], Round=[10, 9, 10, 9], node=[7, 5, 5, 7])
        stream = vectors.load(path)
        check(stream, [[[4], [2]], [[1], [3]]])
        assert stream.nodes == ("7", "5")

    def test_several_row_groups(self, tmp_path) -> None:
        table = pyarrow.table({"x": np.arange(100.0), "y": np.arange(100)})
        parquet.write_table(table, tmp_path / "x.parquet", row_group_size=7)
        check(vectors.load(tmp_path / "x.parquet"), np.stack([np.arange(100.0)] * 2, axis=1)[np.newaxis])

    @pytest.mark.parametrize(
        ("columns", "told"),
        [
            (
                {"x": [1.0, None]},
                ": 1 of 2 numbers are missing (empty, NA or NaN), the first at row 1 (counted from 0), column",
            ),
            (
                {"x": [1, None]},
                ": 1 of 2 numbers are missing (empty, NA or NaN), the first at row 1 (counted from 0), column",
            ),
            ({"x": [1.0], "y": ["a"]}, ": column 'y' holds string, not numbers; say --node y if it names"),
            ({"x": [True]}, ": column 'x' holds bool, not numbers"),
            ({"x": [[1.0, 2.0]]}, ": column 'x' holds list<"),
            ({"x": [1.0], "X": [1.0]}, ": column names are not distinct: x, X"),
            ({"round": [1], "x": [1.0]}, " has a column of rounds but none of nodes"),
            (
                {"round": [1.5], "node": ["a"], "x": [1.0]},
                ": row 0 (counted from 0): the round must be a whole number or a date, got",
            ),
            ({"node": ["a", None], "x": [1.0, 2.0]}, ": row 1 (counted from 0): the node has no name"),
            (
                {"node": ["a", "a"], "x": [1.0, 2.0]},
                "round 0 has the node 'a' twice, at row 0 (counted from 0) and row 1",
            ),
            ({"x": pyarrow.array([], pyarrow.float64())}, " holds no numbers: 0 rows, 1 coordinate"),
            ({"node": ["a"]}, " holds no numbers: 1 row, 0 coordinates"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, columns, told: str) -> None:
        refused(self.write(tmp_path, **columns), told)

    @pytest.mark.parametrize("content", [b"", b"garbage", b"PAR1" + bytes(100) + b"PAR1"])
    def test_what_cannot_be_read(self, tmp_path, content: bytes) -> None:
        refused(write(tmp_path / "x.parquet", content), " cannot be read as Parquet (")

    def test_without_pyarrow_the_extra_is_named(self, tmp_path, monkeypatch) -> None:
        path = self.write(tmp_path, x=[1.0])
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        with pytest.raises(
            InvalidInput, match=r"reading \.parquet files needs pyarrow: pip install 'sparsemean\[lab\]'"
        ):
            vectors.load(path)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("x", ""),
        ("x.pkl", "; pickles may run any code"),
        ("x.csv.gz", "; unpack it"),
        ("x.xlsx", "; save the sheet as"),
    ],
)
def test_unknown_endings_are_told_with_the_known(tmp_path, name: str, remedy: str) -> None:
    path = write(tmp_path / name, "1,2\n")
    refused(
        path, f": the ending '{Path(name).suffix}' is unknown; known are .npy, .npz, .csv, .tsv, .txt, .parquet, .pt"
    )
    refused(path, remedy)


@pytest.mark.parametrize("ending", [".npy", ".csv"])
def test_a_file_that_is_not_there(tmp_path, ending: str) -> None:
    refused(tmp_path / f"absent{ending}", " is not there, or is no file")
