"""Record of all that a reader is shown: figures, tables, answers, verdicts and pages of the kept runs."""
