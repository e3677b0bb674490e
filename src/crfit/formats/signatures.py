"""First bytes of the model files of other tools, by which they are recognised."""

CRFSUITE = b"lCRF"
CRFPP_BINARY = b"d\0\0\0\0\0\0\0"  # version 100, type 0
CRFPP_TEXT = b"version: "
WAPITI = b"#mdl#"
PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"ccopy_reg\n", b"ccopyreg\n")
