"""Worker processes and programs: start them, end them, and measure a run in one of its own."""
