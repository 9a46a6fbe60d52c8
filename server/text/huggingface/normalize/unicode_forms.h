#pragma once

#include <cstdint>

#include "text/huggingface/characters/aligned_text.h"

namespace linserve {

// Lists the normalization forms of Unicode (https://unicode.org/reports/tr15).
enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Brings `from` into the form, and appends it to `to`. Takes time in proportion to the text, times
// the logarithm of the longest run of marks. REQUIRES: it is UTF-8.
void Normalize(UnicodeForm form, const AlignedText& from, AlignedText& to);

}  // namespace linserve
