"""The transcript format: the compact JSONL form of a session that other tools read.

`rows` is one record and its bytes, `translation` leads to session events and back, `prefix` says how much of a file
holds, `names` what it is called. Its source is the reference, as recorded in `fixtures/vectors/transcript_*.jsonl`
and `file_names.jsonl`.
"""
