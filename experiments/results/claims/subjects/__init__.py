"""Claims of the sources, a file for each subject; a file has the name of its section of the page.

A claim is added to `CLAIMS` of its file: terminal, table and page collect it.

    Claim(
        "L9", "confirmed", "A tree of 2 million discs is built in 1 ms.",
        short="A tree is built in 1 ms", there="1 ms",
        quote="the source's sentence, word for word",
        sentence="Reason for the verdict: {time.value} ms.",
        here="{time} ms",
        figure="ladder/h100/gains.png",
        confirmed_if="time.high < 1", refuted_if="time.low > 1",
        queries={"time": number("ladder/h100", "n == 2**21 and rung == 'build'", "time_ms")},
    ),

`claim.Claim` describes the fields, `queries` the short forms of queries. The rule is shown to the reader as
it is written, and the claim's verdict must be the word that it gives.
"""
