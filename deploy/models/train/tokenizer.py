"""Trains the vocabulary: SentencePiece, unigram, 8,000 pieces, folded to lower case.

usage: tokenizer.py WORK

Reads WORK/train.json, writes WORK/tokenizer.model. What no piece covers is spelt in bytes, so no
text is unknown. Nothing is added at the beginning or the end of a text.
"""

import io
import json
import pathlib
import sys

import sentencepiece

VOCABULARY = 8000


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    work = pathlib.Path(sys.argv[1])
    texts = [text["text"] for text in json.loads((work / "train.json").read_text()) if text["kind"] != "paragraph"]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=VOCABULARY,
        model_type="unigram",
        normalization_rule_name="nmt_nfkc_cf",
        byte_fallback=True,
        character_coverage=0.9995,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        num_threads=1,  # more give other pieces each time
        minloglevel=1,
    )
    (work / "tokenizer.model").write_bytes(model.getvalue())


if __name__ == "__main__":
    main()
