"""Texts in many scripts that tokenizers are tried with."""

import bz2
import gettext
import gzip
import random
import unicodedata
from pathlib import Path

HARD = [
    "", " ", "  ", "\n", "a", " a", "a ", "  a  b  ", "Hello, world!", "I'm you're he'll WE'VE it'd 'S 'ſ don't", "a\tb\nc\r\nd\u00a0e\u3000f",
    "naïve café Ångström", "nai\u0308ve cafe\u0301 A\u030angstro\u0308m", "e\u0301\u0327 e\u0327\u0301 \u0301 \u0344 \u0f71\u0f72",
    "ǅ ﬁ ﬀ ½ ² ㎏ Ａ ﷺ ｶﾞ カ\u3099", "İstanbul ıI ΑΣ Σ ẞ ß", "한국어 한국어 각", "中文，没有空格。日本語テキスト", "ภาษาไทย กำ", "हिन्दी क्षि",
    "עִבְרִית שָׁלוֹם", "العَرَبِيَّة لا", "\u202eabc\u202c \u200bd\u200d \u200e\ufeff", "👩\u200d💻👨\u200d👩\u200d👧\u200d👦🏳️\u200d🌈🇩🇪🇫🇷1️⃣",
    "\x00\x01\x07\x7f\x85\xad\u0600\u061c\ufffd\ufffe\uffff\U0010ffff\ue000", "[MASK] x[MASK]  y [CLS][SEP] [UNK]", "<|word|> a<|word|> <|word|>b <|word|><|word|>",
    "Straße straße STRASSE Strasse", "a <right>  b<right>c new york new yorker Anew york NEW YORK new  york",
    "3.14 1234567 ٣٤ ⅷ ①② 1st", "...!!!??? -- «quoted» “q” ‘q’ ¿?", "``quotes'' ''", "x" * 99, "x" * 100, "x" * 101, "é" * 120, "▁ ▁a a▁b ▁▁", "_a_b__", "a.b,c;d:e",
    "\r\n\r\n  \n x \n\n", "e\r\n", "\u1e9b\u0323 \u2126 \u212b \u0958", "\U0001d165\U0001d16e \U0001d7ce\U0001f600", "ᴬ ª º ™ Ⅷ ㍿", "a\u0300\u0301\u0302" * 20,
    "𐵐𐵰 \ua7cb \u1c89 \u0897 \u2e52 \u1885 \u1734 \u166d", "don't  do not 's n't . , ! ?", "\u0e01\u0e33 \u0eb3", "½́ ́ \u0301a", "a\u200d\u0301b", "क\u094d\u200dष",
]

PARTS = [" ", " ", "  ", "\n", "\t", "\u00a0", "\u3000", "▁", "the", "the ", " of", "ing", "12", "3.14", "--", "'", "'s", '"', "``", "[MASK]", "<|word|>", "Straße",
         "<right>", "new york", "e\u0301", "\u0301", "\u0301\u0327", "é", "ﷺ", "Ａ", "ﬁ", "Ω", "½", "각", "ｶﾞ", "👩\u200d💻", "😀", "你好", "。", "\u00ad", "\u200b", "\x01",
         "\x7f", "\x00", "\ufeff", "\ufffd", "\U0010ffff", "لّ", "Z", "ß", "İ", "ǅ", "क्षि", "שָׁ", "ไทย", "a", "aa", "x", "!", "...", "\r\n", "_", "<s>", "##a"]


def random_text(chance, most):
    return "".join(chance.choice(PARTS) * (chance.randrange(5) if chance.randrange(8) == 0 else 1)
                   for _ in range(chance.randrange(most)))


def random_points(chance, most):
    """Characters of all planes, of the lower ones more often; no surrogates.

    What is new to this Python stands in every_point() alone: beside others it may be part of a grapheme cluster in the
    package, and not in ICU.
    """
    def one():
        code = chance.randrange(1, [0x80, 0x800, 0x3400, 0x10000, 0x20000, 0x110000][chance.randrange(6)])
        return chr(code) if unicodedata.category(chr(code)) not in ("Cs", "Cn") else " "
    return "".join(one() for _ in range(chance.randrange(1, most)))


def every_point():
    """All code points but the surrogates, some in a line."""
    points = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    for at in range(0, len(points), 64):
        yield " ".join("a" + chr(code) + "b" for code in points[at:at + 64])


def translations(most):
    """Messages of the programs that are installed, in all languages that there are."""
    catalogues = sorted(Path("/usr/share/locale").glob("*/LC_MESSAGES/*.mo"))
    chance = random.Random(1)
    chance.shuffle(catalogues)
    for path in catalogues:
        try:
            with path.open("rb") as file:
                messages = gettext.GNUTranslations(file)._catalog
        except (OSError, UnicodeDecodeError, ValueError):
            continue  # of an encoding that is none, or no catalogue
        for text in messages.values():
            if isinstance(text, str) and text:
                yield text[:400]
                most -= 1
                if most == 0:
                    return


def documentation(most):
    """Lines of Debian's documentation."""
    for path in sorted(Path("/usr/share/doc").glob("*/*")):
        if not path.is_file() or path.stat().st_size > 1 << 20:
            continue
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
        for line in raw.decode("utf-8", "ignore").splitlines()[:200]:
            if line.strip():
                yield line[:400]
                most -= 1
                if most == 0:
                    return


OPENERS = {".txt": open, ".gz": gzip.open, ".bz2": bz2.open}


def unicode_tests():
    """The examples in Unicode's files: normalization, breaks of graphemes, words, sentences and lines, emoji."""
    for path in sorted(Path("/usr/share/unicode").rglob("*")):
        if not any(word in path.name for word in ("NormalizationTest", "BreakTest", "emoji-test", "emoji-sequences",
                                                  "emoji-zwj")):
            continue
        if path.suffix not in OPENERS:
            continue
        with OPENERS[path.suffix](path, "rt", encoding="utf-8") as file:
            text = file.read()
        for line in text.splitlines():
            fields = line.split("#")[0].replace("÷", " ").replace("×", " ").split(";")
            for field in fields[:5]:
                codes = field.split()
                if codes and all(len(code) >= 4 and set(code) <= set("0123456789ABCDEF") for code in codes):
                    characters = [int(code, 16) for code in codes]
                    if not any(0xD800 <= code < 0xE000 for code in characters):
                        yield "".join(map(chr, characters))


def corpus(lines, seed=1):
    """So many texts and a few more, always the same ones."""
    chance = random.Random(seed)
    yield from HARD
    yield from unicode_tests()
    yield from every_point()
    share = lines // 5
    yield from translations(3 * share)
    yield from documentation(share)
    for _ in range(share // 2):
        yield random_text(chance, 20)
        yield random_points(chance, 30)
    for _ in range(20):
        yield random_text(chance, 3000)
