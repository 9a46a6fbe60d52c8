#include "text/huggingface/characters/characters.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "core/strings/utf8.h"
#include "text/huggingface/characters/unicode_version.h"

namespace linserve {
namespace {

struct CharacterRange {
  char32_t first;
  char32_t last;

  bool Has(char32_t code) const { return first <= code && code <= last; }
};

// ICU 72 is of Unicode 15. These are what the package's libraries know of Unicode 16 and 17
// besides, as its version 0.23.3 shows it for each character (tests/system/tokenizers/compare.py).
constexpr CharacterRange kNewWords[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},
    {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2},
    {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
    {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
    {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79},
    {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9}, {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D}};
constexpr CharacterRange kNewNumerics[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9},
    {0x11DE0, 0x11DE9}, {0x16130, 0x16139}, {0x16D70, 0x16D79},
    {0x16FF4, 0x16FF6}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};
constexpr CharacterRange kNewLetters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3},
    {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x11380, 0x11389},
    {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7},
    {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0}, {0x13460, 0x143FA},
    {0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED},
    {0x1E5F0, 0x1E5F0}, {0x2EBF0, 0x2EE5D}};
constexpr CharacterRange kNewNumbers[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139},
    {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};
constexpr CharacterRange kNewCombining[] = {
    {0x897, 0x897},     {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0},
    {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0},
    {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
    {0x1E5EE, 0x1E5EF}};

// Says that the characters from `first` to `last`, in these steps, have lower cases at a distance.
struct NewCase {
  char32_t first;
  char32_t last;
  char32_t step;
  int32_t distance;
};
constexpr NewCase kNewCases[] = {{0x1C89, 0x1C89, 1, 1},      {0xA7CB, 0xA7CB, 1, 0x264 - 0xA7CB},
                                 {0xA7CC, 0xA7CE, 2, 1},      {0xA7D2, 0xA7D4, 2, 1},
                                 {0xA7DA, 0xA7DA, 1, 1},      {0xA7DC, 0xA7DC, 1, 0x19B - 0xA7DC},
                                 {0x10D50, 0x10D65, 1, 0x20}, {0x16EA0, 0x16EB8, 1, 0x1B}};

constexpr CharacterRange kIdeographs[] = {
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
    {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};

template <size_t N>
std::string SetOf(const CharacterRange (&ranges)[N]) {
  const auto written = [](char32_t code) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "\\x{%X}", static_cast<unsigned>(code));
    return std::string(text.data());
  };
  std::string set;
  for (const auto& [first, last] : ranges) set += written(first) + "-" + written(last);
  return set;
}

template <size_t N>
bool Among(const CharacterRange (&ranges)[N], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const CharacterRange& range) { return range.Has(code); });
}

// The package's categories for Bert are of Unicode 8, in which some characters had others.
constexpr uint8_t kOfCategories = 8;

bool IsRemoved(char32_t code, uint32_t category) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  if (code == 0xFFFDu) return true;
  return (category & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 &&
         IsIn(code, kOfCategories);
}

bool IsPunctuationOf(char32_t code, uint32_t category) {
  if (code == 0x166Du || code == 0x111C9u) return true;
  if (code < 0x80u && (category & U_GC_S_MASK) != 0) return true;
  return (category & U_GC_P_MASK) != 0 && IsIn(code, kOfCategories);
}

bool IsNonspacing(char32_t code, uint32_t category) {
  if (code == 0x1734u) return true;
  if (code == 0x1885u || code == 0x1886u || code == 0xA9BDu || code == 0x111C9u) return false;
  return (category & U_GC_MN_MASK) != 0 && IsIn(code, kOfCategories);
}

bool IsMark(char32_t code, uint32_t category) {
  if (code == 0x1CF2u || code == 0x1CF3u) return true;
  return (category & U_GC_M_MASK) != 0 && code != 0x111C9u && IsKnownToForms(code);
}

bool IsWord(char32_t code, uint32_t category) {
  constexpr uint32_t kParts = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  const auto icu = static_cast<UChar32>(code);
  return (category & kParts) != 0 || u_hasBinaryProperty(icu, UCHAR_ALPHABETIC) != 0 ||
         u_hasBinaryProperty(icu, UCHAR_JOIN_CONTROL) != 0 || Among(kNewWords, code);
}

const NewCase* NewCaseOf(char32_t code) {
  const auto* const found =
      std::find_if(std::begin(kNewCases), std::end(kNewCases), [code](const NewCase& one) {
        return one.first <= code && code <= one.last && (code - one.first) % one.step == 0;
      });
  return found == std::end(kNewCases) ? nullptr : found;
}

constexpr char32_t kDottedI = 0x130;  // the only one whose lower case is two characters

bool IsUpper(char32_t code) {
  const auto icu = static_cast<UChar32>(code);
  return u_tolower(icu) != icu || code == kDottedI || NewCaseOf(code) != nullptr;
}

uint32_t FormTraits(char32_t code) {
  if (code < 0x80u || !IsKnownToForms(code)) return 0;
  const auto icu = static_cast<UChar32>(code);
  const auto changes = [icu](UProperty check) {
    return u_getIntPropertyValue(icu, check) != UNORM_YES;
  };
  const bool combines = u_getCombiningClass(icu) != 0;
  uint32_t traits = 0;
  if (combines || changes(UCHAR_NFC_QUICK_CHECK)) traits |= kNotNfc;
  if (combines || changes(UCHAR_NFD_QUICK_CHECK)) traits |= kNotNfd;
  if (combines || changes(UCHAR_NFKC_QUICK_CHECK)) traits |= kNotNfkc;
  if (combines || changes(UCHAR_NFKD_QUICK_CHECK)) traits |= kNotNfkd;
  if (traits == 0) return 0;
  // The forms are parts of ICU's library, so that there is no way to fail.
  UErrorCode error = U_ZERO_ERROR;
  for (const icu::Normalizer2* form :
       {icu::Normalizer2::getNFCInstance(error), icu::Normalizer2::getNFKCInstance(error)}) {
    if (form->hasBoundaryBefore(icu) == 0) traits |= kJoins;
  }
  return traits;
}

uint32_t Compute(char32_t code) {
  const auto icu = static_cast<UChar32>(code);
  const uint32_t category = U_GET_GC_MASK(icu);
  uint32_t traits = FormTraits(code);
  const auto add = [&traits](bool has, CharacterTrait trait) { traits |= has ? trait : 0U; };
  add(u_isUWhiteSpace(icu) != 0, kWhite);
  add(IsRemoved(code, category), kRemoved);
  add(IsPunctuationOf(code, category), kPunctuation);
  add(IsNonspacing(code, category), kNonspacing);
  add(IsMark(code, category), kMark);
  add(Among(kIdeographs, code), kIdeograph);
  add((category & U_GC_N_MASK) != 0 || Among(kNewNumerics, code), kNumeric);
  add(IsWord(code, category), kWord);
  add(IsUpper(code), kUpper);
  add((category & U_GC_L_MASK) != 0 || Among(kNewLetters, code), kLetter);
  add((category & U_GC_N_MASK) != 0 || Among(kNewNumbers, code), kNumber);
  add((category & U_GC_M_MASK) != 0 || Among(kNewCombining, code), kCombines);
  add(u_getIntPropertyValue(icu, UCHAR_GRAPHEME_CLUSTER_BREAK) == U_GCB_OTHER &&
          !Among(kNewCombining, code),
      kPlainCluster);
  return traits;
}

// Beyond these two planes are ideographs, and little else.
constexpr char32_t kTabled = 0x20000;

const std::vector<uint32_t>& Table() {
  static const std::vector<uint32_t> table = [] {
    std::vector<uint32_t> traits(kTabled);
    for (char32_t code = 0; code < kTabled; ++code) traits[code] = Compute(code);
    return traits;
  }();
  return table;
}

}  // namespace

Character CharacterBefore(std::string_view text, size_t at) {
  return CharacterAt(text, CharacterBegin(text, at - 1));
}

Utf8Character::Utf8Character(char32_t code) {
  const auto add = [this](char32_t byte) { bytes_[size_++] = static_cast<char>(byte); };
  if (code < 0x80u) {
    add(code);
    return;
  }
  if (code < 0x800u) {
    add(0xC0u | code >> 6u);
  } else {
    if (code < 0x10000u) {
      add(0xE0u | code >> 12u);
    } else {
      add(0xF0u | code >> 18u);
      add(0x80u | (code >> 12u & 0x3Fu));
    }
    add(0x80u | (code >> 6u & 0x3Fu));
  }
  add(0x80u | (code & 0x3Fu));
}

uint32_t TraitsOf(char32_t code) {
  static const uint32_t* const table = Table().data();
  return code < kTabled ? table[code] : Compute(code);
}

std::string NewCharacters(CharacterTrait trait) {
  if (trait == kLetter) return SetOf(kNewLetters);
  if (trait == kNumber) return SetOf(kNewNumbers);
  return trait == kCombines ? SetOf(kNewCombining) : SetOf(kNewWords);
}

void AppendLower(char32_t code, std::u32string& lower) {
  if (code == kDottedI) {
    lower += {U'i', char32_t{0x307}};
  } else if (const NewCase* const one = NewCaseOf(code); one != nullptr) {
    lower += static_cast<char32_t>(static_cast<int32_t>(code) + one->distance);
  } else {
    lower += static_cast<char32_t>(u_tolower(static_cast<UChar32>(code)));
  }
}

}  // namespace linserve
