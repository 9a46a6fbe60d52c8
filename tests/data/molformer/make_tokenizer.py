#!/usr/bin/env python3
"""Makes a folder with a small MolformerTokenizer, slow and fast, and what both make of some texts.

  python make_tokenizer.py FOLDER tokenizer

FOLDER holds tokenization_molformer.py, as MoLFormer-XL's folder on the hub had it; it is run with transformers 4.35.2.
The fast tokenizer is made of the slow one as transformers does it for models of its own.
"""
import json
import os
import random
import sys
import tempfile

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

sys.path.insert(0, sys.argv[1])
from tokenization_molformer import MolformerTokenizer  # noqa: E402

ATOMS = "C c ( ) 1 O N 2 = n 3 [C@H] [C@@H] F S Cl - o 4 # s Br / [nH] 5 [N+] [O-] . 6 \\ P I [Si] %10 + b B * [se]".split()
HARD = ["", " ", "CCO", "CC(=O)Oc1ccccc1C(=O)O", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "C[C@@H](N)C(=O)O", "xyz", "ClBr", "CClC",
        "[Na+].[Cl-]", "[unclosed", "][C@H]", "C C\tO\nN", "%10%1%123", "<bos>CC<eos>", "C<mask>C", "C <mask> C", "<pad",
        "<unk>", "caf\u00e9 \u4f60C\u597d[\u4f60]", "[C\n@H]C", "@@@", "[[C@H]]", "a<mask>[C@H<mask>]"]


def fast_of(slow):
    tokenizer = Tokenizer(models.WordLevel(slow.vocab, unk_token=slow.unk_token))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(slow.pattern), behavior="removed", invert=True),
        pre_tokenizers.Split(Regex(slow.pattern), behavior="isolated")])
    cls, sep = slow.cls_token, slow.sep_token
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0", pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, slow.cls_token_id), (sep, slow.sep_token_id)])
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([slow.unk_token, sep, slow.pad_token, cls, slow.mask_token])
    return tokenizer


def main():
    folder = sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    chance = random.Random(3)
    texts = HARD + ["".join(chance.choice(ATOMS + ["[Xe]", " ", "<mask>", "z"]) for _ in range(chance.randrange(60)))
                    for _ in range(40)]
    with tempfile.TemporaryDirectory() as place:
        with open(os.path.join(place, "vocab.json"), "w") as file:
            json.dump({token: i for i, token in enumerate(["<bos>", "<eos>", "<pad>", "<mask>", *ATOMS, "<unk>"])}, file)
        slow = MolformerTokenizer(os.path.join(place, "vocab.json"), model_max_length=202)
    slow.save_pretrained(folder)
    fast = fast_of(slow)
    fast.save(os.path.join(folder, "tokenizer.json"))
    ids = [slow(text)["input_ids"] for text in texts]
    encoded = {"texts": texts, "slow": ids, "fast": [one.ids for one in fast.encode_batch(texts)],
               "decoded": fast.decode_batch(ids)}
    with open(os.path.join(folder, "encoded.json"), "w") as file:
        json.dump(encoded, file, separators=(",", ":"))
        file.write("\n")
    print(len(texts), "texts; slow and fast agree:", encoded["slow"] == encoded["fast"])
    for text, a, b in zip(texts, encoded["slow"], encoded["fast"]):
        if a != b:
            print(repr(text), a, b)


main()
