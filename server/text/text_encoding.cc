#include "text/text_encoding.h"

#include <algorithm>

namespace linserve {
namespace {

// So many ids beyond twice the wanted ones may wait before the first are dropped.
constexpr size_t kMostOfTurn = 16 << 10;

}  // namespace

TextEncoding::TextEncoding(const Tokenizer& tokenizer, std::string_view text, Truncation truncation,
                           int64_t longest)
    : tokenizer_(tokenizer),
      truncation_(truncation),
      longest_(static_cast<size_t>(longest)),
      reader_(tokenizer.Read(text, false)) {
  AddMarks(tokenizer.marks().before);
}

TextEncoding::TextEncoding(const Tokenizer& tokenizer, std::string_view text, bool marks)
    : tokenizer_(tokenizer),
      marks_(marks),
      finds_places_(true),
      truncation_(Truncation::kNone),
      longest_(0),
      reader_(tokenizer.Read(text, true)) {
  AddMarks(tokenizer.marks().before);
}

absl::Status TextEncoding::Advance(size_t& budget) {
  while (!done_ && budget > 0) {
    const auto work = reader_->Step(tokens_);
    if (!work.ok()) return work.status();
    done_ = reader_->done();
    Limit();
    budget -= std::min(budget, *work);
  }
  return absl::OkStatus();
}

void TextEncoding::AddMarks(const std::vector<int64_t>& marks) {
  if (!marks_) return;
  for (const int64_t mark : marks) {
    tokens_.ids.push_back(mark);
    if (finds_places_) tokens_.places.push_back({.is_mark = true});
  }
}

// Drops ids that truncation will drop, and is done where that is all that would follow.
void TextEncoding::Limit() {
  std::vector<int64_t>& ids = tokens_.ids;
  if (longest_ == 0 || ids.size() <= longest_) return;
  if (truncation_ != Truncation::kLeft) {
    done_ = true;
  } else if (ids.size() > 2 * longest_ + kMostOfTurn) {
    const size_t kept = longest_ + 1;  // one too many, which says that the text was too long
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(kept));
  }
}

absl::Status TextEncoding::Finish() {
  const bool whole = reader_->done();
  if (whole && !reader_->has_pieces() && !tokenizer_.marks().around_nothing) {
    tokens_ = TextTokens();
    return absl::OkStatus();
  }
  AddMarks(tokenizer_.marks().after);
  return tokenizer_.Truncate(truncation_, static_cast<int64_t>(longest_), tokens_.ids);
}

}  // namespace linserve
