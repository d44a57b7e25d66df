"""L-systems of the curve families that have one: symbol -> pattern, for each dimension.

`HILBERT` serves `hilbert` and `moore`. In 3D it is the grammar of the granular-gas thesis [thesis, appendix];
its four symbols are four chiral versions of the curve.
"""

HILBERT = {
    2: {"A": ">BF<AFA<FB>", "B": "<AF>BFB>FA<"},
    3: {
        "A": "B-#+C#C+#-D&#^D-#+&&C#C+#+B<<",
        "B": "A&#^C#B^#^D^^-#-D^|#^B|#C^#^A<<",
        "C": "|D^|#^B-#+C^#^A&&#A&#^C+#+B^#^D<<",
        "D": "|C#B-#+B|#A&#^A&&#B-#+B|#C<<",
    },
}
PEANO = {2: {"A": "AFBFA>F>BFAFB<F<AFBFA", "B": "BFAFB<F<AFBFA>F>BFAFB"}}
