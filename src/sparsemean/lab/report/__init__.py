"""What people look at: one self-contained HTML page, or one image file per figure, made from tidy tables."""

from sparsemean.lab.report.comparison import write_compare_report
from sparsemean.lab.report.reproduction import write_report
from sparsemean.lab.report.static import write_figures

__all__ = ["write_compare_report", "write_figures", "write_report"]
