#include "text/huggingface/normalize/unicode_forms.h"

#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "text/huggingface/characters/characters.h"
#include "text/huggingface/characters/unicode_version.h"

namespace linserve {
namespace {

// Holds ICU's data of the forms. They are part of the library, so that there is no way to fail.
struct Data {
  const icu::Normalizer2* canonical;
  const icu::Normalizer2* compatible;
};

const Data& IcuData() {
  static const Data data = [] {
    UErrorCode error = U_ZERO_ERROR;
    return Data{icu::Normalizer2::getNFCInstance(error), icu::Normalizer2::getNFKCInstance(error)};
  }();
  return data;
}

// Represents a character with its class of combining (0: it begins something) and its place.
struct Placed {
  char32_t code = 0;
  uint8_t combining = 0;
  Origin origin;
};

uint8_t CombiningClass(char32_t code) {
  if (code < 0x300u || !IsKnownToForms(code)) return 0;
  return IcuData().canonical->getCombiningClass(static_cast<UChar32>(code));
}

// Normalizes clusters: a character with those that may change with it.
class Clusters {
 public:
  Clusters(UnicodeForm form, AlignedText& to)
      : composes_(form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc),
        data_(form == UnicodeForm::kNfc || form == UnicodeForm::kNfd ? *IcuData().canonical
                                                                     : *IcuData().compatible),
        to_(to) {}

  void Add(char32_t code, Origin origin) {
    if (code < 0x80u || !IsKnownToForms(code) ||
        !data_.getDecomposition(static_cast<UChar32>(code), decomposition_)) {
      cluster_.push_back({code, CombiningClass(code), origin});
      return;
    }
    for (int32_t i = 0; i < decomposition_.length();) {
      const auto part = static_cast<char32_t>(decomposition_.char32At(i));
      cluster_.push_back({part, CombiningClass(part), origin});
      i += U16_LENGTH(part);
    }
  }

  void End() {
    Reorder();
    if (composes_) Compose();
    for (const Placed& one : cluster_) to_.Add(Utf8Character(one.code), one.origin);
    cluster_.clear();
  }

 private:
  // Sorts each run of marks by their classes.
  void Reorder() {
    const auto is_mark = [](const Placed& one) { return one.combining != 0; };
    for (auto begin = cluster_.begin(); begin != cluster_.end();) {
      begin = std::find_if(begin, cluster_.end(), is_mark);
      const auto end = std::find_if_not(begin, cluster_.end(), is_mark);
      std::stable_sort(begin, end,
                       [](const Placed& a, const Placed& b) { return a.combining < b.combining; });
      begin = end;
    }
  }

  // Joins each character with the last one that begins something, where nothing blocks that.
  void Compose() {
    constexpr size_t kNone = ~size_t{0};
    size_t starter = kNone;
    size_t kept = 0;
    for (const Placed& one : cluster_) {
      const bool adjacent = starter != kNone && kept == starter + 1;
      const bool open = adjacent || (starter != kNone && cluster_[kept - 1].combining != 0 &&
                                     cluster_[kept - 1].combining < one.combining);
      if (open) {
        const UChar32 both = Pair(cluster_[starter].code, one.code);
        if (both >= 0) {
          cluster_[starter].code = static_cast<char32_t>(both);
          continue;
        }
      }
      if (one.combining == 0) starter = kept;
      cluster_[kept++] = one;
    }
    cluster_.resize(kept);
  }

  static UChar32 Pair(char32_t a, char32_t b) {
    const UChar32 both =
        IcuData().canonical->composePair(static_cast<UChar32>(a), static_cast<UChar32>(b));
    return both >= 0 && IsKnownToForms(static_cast<char32_t>(both)) ? both : -1;
  }

  const bool composes_;
  const icu::Normalizer2& data_;
  AlignedText& to_;
  std::vector<Placed> cluster_;
  icu::UnicodeString decomposition_;
};

uint32_t ChangesIn(UnicodeForm form) {
  switch (form) {
    case UnicodeForm::kNfc:
      return kNotNfc;
    case UnicodeForm::kNfd:
      return kNotNfd;
    case UnicodeForm::kNfkc:
      return kNotNfkc;
    case UnicodeForm::kNfkd:
      break;
  }
  return kNotNfkd;
}

}  // namespace

void Normalize(UnicodeForm form, const AlignedText& from, AlignedText& to) {
  const uint32_t changes = ChangesIn(form);
  const std::string_view text = from.text;
  Clusters clusters(form, to);
  size_t same = 0;  // where what was not copied yet begins, which does not change
  for (size_t at = 0; at < text.size();) {
    const Character first = CharacterAt(text, at);
    const bool changed = first.code >= 0x80u && (TraitsOf(first.code) & changes) != 0;
    size_t end = at + first.bytes;
    const auto joined = [&] {
      return static_cast<unsigned char>(text[end]) >= 0x80u &&
             (TraitsOf(CharacterAt(text, end).code) & kJoins) != 0;
    };
    if (!changed && (end == text.size() || !joined())) {
      at = end;
      continue;
    }
    to.AddFrom(from, same, at);
    clusters.Add(first.code, from.OriginAt(at));
    while (end < text.size() && joined()) {
      const Character next = CharacterAt(text, end);
      clusters.Add(next.code, from.OriginAt(end));
      end += next.bytes;
    }
    clusters.End();
    same = at = end;
  }
  to.AddFrom(from, same, text.size());
}

}  // namespace linserve
