"""Drawing a figure: as an image file with matplotlib, or as data for the script of a page."""
