#include "text/huggingface/split/split_behavior.h"

#include <algorithm>

namespace linserve {
namespace {

// Represents a part of a piece: a match, or what is between two.
struct Stretch {
  ByteRange range;
  bool is_match = false;
};

std::vector<Stretch> StretchesOf(const std::vector<ByteRange>& matches, bool inverted,
                                 ByteRange piece) {
  std::vector<Stretch> stretches;
  size_t at = piece.begin;
  for (const ByteRange& match : matches) {
    if (at != match.begin) stretches.push_back({{at, match.begin}, inverted});
    stretches.push_back({match, !inverted});
    at = match.end;
  }
  if (at != piece.end) stretches.push_back({{at, piece.end}, inverted});
  return stretches;
}

std::vector<ByteRange> Contiguous(const std::vector<Stretch>& stretches) {
  std::vector<ByteRange> joined;
  bool after_match = false;
  for (const Stretch& one : stretches) {
    if (one.is_match == after_match && !joined.empty()) {
      joined.back().end = one.range.end;
    } else {
      joined.push_back(one.range);
    }
    after_match = one.is_match;
  }
  return joined;
}

// Joins each match with what is before it, unless that is a match, too.
std::vector<ByteRange> WithPrevious(const std::vector<Stretch>& stretches) {
  std::vector<ByteRange> joined;
  bool after_match = false;
  for (const Stretch& one : stretches) {
    if (one.is_match && !after_match && !joined.empty()) {
      joined.back().end = one.range.end;
    } else {
      joined.push_back(one.range);
    }
    after_match = one.is_match;
  }
  return joined;
}

// Does the same with what is behind it, from the end to the front.
std::vector<ByteRange> WithNext(const std::vector<Stretch>& stretches) {
  std::vector<ByteRange> joined;
  bool before_match = false;
  for (auto one = stretches.rbegin(); one != stretches.rend(); ++one) {
    if (one->is_match && !before_match && !joined.empty()) {
      joined.back().begin = one->range.begin;
    } else {
      joined.push_back(one->range);
    }
    before_match = one->is_match;
  }
  std::reverse(joined.begin(), joined.end());
  return joined;
}

std::vector<ByteRange> Divided(const std::vector<Stretch>& stretches, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kContiguous:
      return Contiguous(stretches);
    case SplitBehavior::kMergedWithPrevious:
      return WithPrevious(stretches);
    case SplitBehavior::kMergedWithNext:
      return WithNext(stretches);
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      break;
  }
  std::vector<ByteRange> kept;
  for (const Stretch& one : stretches) {
    if (behavior == SplitBehavior::kIsolated || !one.is_match) kept.push_back(one.range);
  }
  return kept;
}

}  // namespace

void DivideAt(const std::vector<ByteRange>& matches, SplitBehavior behavior, bool inverted,
              ByteRange piece, std::vector<ByteRange>& pieces) {
  for (const ByteRange& one : Divided(StretchesOf(matches, inverted, piece), behavior)) {
    if (one.begin < one.end) pieces.push_back(one);
  }
}

}  // namespace linserve
