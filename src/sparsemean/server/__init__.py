"""The server: who came, what is estimated from it, and the order that loses nothing."""

from sparsemean.server.clip import Clip
from sparsemean.server.reports import CsvReports, PrometheusReports, RoundReport, TensorBoardReports
from sparsemean.server.server import Server

__all__ = ["Clip", "CsvReports", "PrometheusReports", "RoundReport", "Server", "TensorBoardReports"]
