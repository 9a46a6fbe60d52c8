#include "text/text_encoding.h"

#include <algorithm>

#include "core/status/utf8.h"

namespace linserve {
namespace {

// Pieces are chosen for so many bytes at once, or for fewer.
constexpr size_t kMostAtOnce = 16 << 10;
constexpr size_t kFewAtOnce = 2 << 10;

}  // namespace

TextEncoding::TextEncoding(const Tokenizer& tokenizer, std::string_view text, Truncation truncation,
                           int64_t longest)
    : tokenizer_(tokenizer),
      truncation_(truncation),
      longest_(static_cast<size_t>(longest)),
      normalized_(tokenizer.normalizer_, text),
      look_at_(kFewAtOnce) {
  if (tokenizer.bos_) ids_.push_back(*tokenizer.bos_);
}

TextEncoding::TextEncoding(const Tokenizer& tokenizer, std::string_view text, bool marks)
    : tokenizer_(tokenizer),
      marks_(marks),
      finds_places_(true),
      truncation_(Truncation::kNone),
      longest_(0),
      normalized_(tokenizer.normalizer_, text),
      look_at_(kFewAtOnce) {
  if (!marks || !tokenizer.bos_) return;
  ids_.push_back(*tokenizer.bos_);
  places_.push_back({.is_mark = true});
}

absl::Status TextEncoding::Advance(size_t& budget) {
  while (!done_ && budget > 0) {
    const size_t unread = normalized_.left();
    if (!normalized_.done()) {
      absl::Status status =
          normalized_.Append(kFewAtOnce, waiting_, finds_places_ ? &origins_ : nullptr);
      if (!status.ok()) return status;
    }
    const size_t ready = ReadyBytes();
    if (ready > 0) Encode(ready);
    Limit();
    done_ = done_ || (normalized_.done() && waiting_.empty());
    budget -= std::min(budget, unread - normalized_.left() + ready);
  }
  return absl::OkStatus();
}

// Returns how much of what waits has pieces that do not depend on what follows; 0: not known yet.
size_t TextEncoding::ReadyBytes() {
  if (normalized_.done() && waiting_.size() <= kMostAtOnce) return waiting_.size();
  if (waiting_.size() < look_at_) return 0;
  const size_t end = CharacterBegin(waiting_, std::min(waiting_.size() - 1, kMostAtOnce));
  for (size_t at = end; at > 0; at = CharacterBegin(waiting_, at - 1)) {
    if (tokenizer_.pieces_->CanCut(waiting_, at)) return at;
  }
  if (waiting_.size() > kMostAtOnce) return end;
  // So looking takes time in proportion to the text.
  look_at_ = std::min(2 * waiting_.size(), kMostAtOnce + 1);
  return 0;
}

void TextEncoding::Encode(size_t bytes) {
  const std::string_view text = std::string_view(waiting_).substr(0, bytes);
  for (const ChosenPiece& piece : ChoosePieces(*tokenizer_.pieces_, text, score_)) {
    const size_t before = ids_.size();
    Add(piece);
    if (!finds_places_) continue;
    AddPlaces(before, static_cast<size_t>(piece.text.data() - text.data()), piece.text.size());
  }
  waiting_.erase(0, bytes);
  if (finds_places_) {
    origins_.erase(origins_.begin(), origins_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  look_at_ = kFewAtOnce;
}

void TextEncoding::Add(const ChosenPiece& piece) {
  const Vocabulary& vocabulary = *tokenizer_.pieces_;
  const bool unknown = piece.id == vocabulary.unknown;
  has_pieces_ = true;
  if (unknown && vocabulary.model.byte_fallback) {
    for (const char byte : piece.text) {
      ids_.push_back(vocabulary.bytes[static_cast<unsigned char>(byte)]);
    }
  } else if (!unknown || !after_unknown_) {  // what is unknown is one token together
    ids_.push_back(piece.id);
  }
  after_unknown_ = unknown;
}

// Adds the place of a piece, which is `bytes` of what waits, and became the last ids.
void TextEncoding::AddPlaces(size_t ids_before, size_t begin, size_t bytes) {
  const size_t next = begin + bytes;
  const TokenPlace place{.begin = origins_[begin],
                         .end = next < origins_.size() ? origins_[next] : normalized_.end()};
  if (ids_.size() == ids_before) {  // it went on with what is unknown
    places_.back().end = place.end;
    return;
  }
  // Where it became bytes, the last of them stands for the character.
  while (places_.size() + 1 < ids_.size()) {
    places_.push_back({.begin = place.begin, .end = place.begin});
  }
  places_.push_back(place);
}

// Drops ids that truncation will drop, and is done where that is all that would follow.
void TextEncoding::Limit() {
  if (longest_ == 0 || ids_.size() <= longest_) return;
  if (truncation_ != Truncation::kLeft) {
    done_ = true;
  } else if (ids_.size() > 2 * longest_ + kMostAtOnce) {
    const size_t kept = longest_ + 1;  // one too many, which says that the text was too long
    ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(kept));
  }
}

absl::Status TextEncoding::Finish() {
  if (!has_pieces_) {
    ids_.clear();
    places_.clear();
    return absl::OkStatus();
  }
  if (marks_ && tokenizer_.eos_) {
    ids_.push_back(*tokenizer_.eos_);
    if (finds_places_) places_.push_back({.is_mark = true});
  }
  return tokenizer_.Truncate(truncation_, static_cast<int64_t>(longest_), ids_);
}

}  // namespace linserve
