"""Reports for people, made from result tables: one self-contained HTML page, or one image file per figure.

- ``figure``: what is to be drawn, as plain data
- ``draw``: a figure as an image file (matplotlib) or as data for the script of a page
- ``page``: HTML pages with figures, tables and verdicts
"""

from sparsemean.lab.report.draw.static import write_figures
from sparsemean.lab.report.page.comparison import write_compare_report
from sparsemean.lab.report.page.reproduction import write_report

__all__ = ["write_compare_report", "write_figures", "write_report"]
