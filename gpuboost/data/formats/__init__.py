"""Files of data: text, Parquet, and the library's own."""
