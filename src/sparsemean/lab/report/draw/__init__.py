"""Drawing a figure: as an image file with matplotlib, or as data for plotly.js."""
