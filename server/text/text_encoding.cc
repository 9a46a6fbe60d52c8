#include "text/text_encoding.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace linserve {
namespace {

// So many ids beyond twice the wanted ones may wait before the first are dropped.
constexpr size_t kMostOfTurn = 16 << 10;

const Marks kNoMarks;

}  // namespace

TextEncoding::TextEncoding(const Tokenizer& tokenizer, std::string_view text, Truncation truncation,
                           int64_t longest, const Marks& marks)
    : marks_(&marks),
      truncation_(truncation),
      longest_(static_cast<size_t>(longest)),
      reader_(tokenizer.Read(text, false)) {
  AddMarks(marks_->before);
}

TextEncoding::TextEncoding(const Tokenizer& tokenizer, std::string_view text, bool marks)
    : marks_(marks ? &tokenizer.marks() : &kNoMarks),
      finds_places_(true),
      truncation_(Truncation::kNone),
      longest_(0),
      reader_(tokenizer.Read(text, true)) {
  AddMarks(marks_->before);
}

TextEncoding::TextEncoding(const Tokenizer& tokenizer, std::string_view text,
                           std::string_view second, Truncation truncation, int64_t longest,
                           std::shared_ptr<const FirstText> first)
    : pair_(&*tokenizer.pair()),
      marks_(&tokenizer.marks()),
      truncation_(truncation),
      longest_(static_cast<size_t>(longest)),
      first_(std::move(first)),
      reader_(tokenizer.Read(first_ ? second : text, false)) {
  if (!first_) next_ = tokenizer.Read(second, false);
  const bool no_room = longest_ > 0 && pair_->marks() > longest_;
  if (no_room) first_ = std::make_shared<const FirstText>();
  done_ = no_room || (first_ && HasTooMany());
}

absl::Status TextEncoding::Advance(size_t& budget) {
  while (!done_ && budget > 0) {
    const auto work = reader_->Step(tokens_);
    if (!work.ok()) return work.status();
    if (pair_ != nullptr) {
      EndTurn();
    } else {
      done_ = reader_->done();
      Limit();
    }
    budget -= std::min(budget, *work);
  }
  return absl::OkStatus();
}

size_t TextEncoding::left() const {
  if (done_) return 0;
  return reader_->left() + (next_ ? next_->left() : 0);
}

size_t TextEncoding::held_bytes() const {
  const size_t first = first_ ? first_->ids.capacity() * sizeof(int64_t) : 0;
  return tokens_.held_bytes() + first + types_.capacity() * sizeof(int64_t) +
         reader_->held_bytes() + (next_ ? next_->held_bytes() : 0);
}

void TextEncoding::AddMarks(const std::vector<int64_t>& marks) {
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

// Goes on with the second text of two, or ends, where the rest of one does not count.
void TextEncoding::EndTurn() {
  if (!reader_->done() && !HasTooMany() && !HasEnough()) return;
  if (!first_) KeepFirst();
  done_ = !next_ || HasTooMany();
  if (!done_) reader_ = std::move(next_);
}

// Says whether two texts have more ids than they may, of which none may be dropped.
bool TextEncoding::HasTooMany() const {
  const size_t before = first_ ? first_->count : 0;
  return truncation_ == Truncation::kNone && longest_ > 0 &&
         before + tokens_.ids.size() + pair_->marks() > longest_;
}

// Says whether the ids of the text that is read are more than may stay. Where their room is odd,
// the longer of two texts has one more, so that it must be known which one that is.
bool TextEncoding::HasEnough() const {
  if (truncation_ != Truncation::kRight || longest_ == 0) return false;
  const size_t room = longest_ - pair_->marks();
  const size_t read = tokens_.ids.size();
  return read > room && (room % 2 == 0 || (first_ && read > first_->count));
}

// Keeps what may stay of the first text, which is read.
void TextEncoding::KeepFirst() {
  FirstText first{std::exchange(tokens_.ids, {}), 0};
  first.count = first.ids.size();
  const size_t room = longest_ == 0 ? first.count : longest_ - pair_->marks();
  if (truncation_ != Truncation::kNone && first.count > room) {
    const auto spare = static_cast<std::ptrdiff_t>(first.count - room);
    const auto begin =
        truncation_ == Truncation::kLeft ? first.ids.begin() : first.ids.end() - spare;
    first.ids.erase(begin, begin + spare);
  }
  first_ = std::make_shared<const FirstText>(std::move(first));
}

absl::Status TextEncoding::FinishPair() {
  size_t first = first_->ids.size();
  size_t second = tokens_.ids.size();
  const size_t marks = pair_->marks();
  if (longest_ > 0 && truncation_ != Truncation::kNone) {
    if (marks > longest_) {
      return absl::InvalidArgumentError("the model takes " + std::to_string(longest_) +
                                        " tokens, fewer than the " + std::to_string(marks) +
                                        " marks that stand around two texts");
    }
    std::tie(first, second) = LongestFirst(first_->count, second, longest_ - marks);
  }
  JoinPair(first, second);
  return Truncate(*marks_, truncation_, static_cast<int64_t>(longest_), tokens_.ids);
}

// Joins so many ids of each text as the template says.
void TextEncoding::JoinPair(size_t first, size_t second) {
  const std::vector<int64_t> other = std::exchange(tokens_.ids, {});
  const auto take = [&](const std::vector<int64_t>& text, size_t kept) {
    const size_t begin = truncation_ == Truncation::kLeft ? text.size() - kept : 0;
    const auto from = text.begin() + static_cast<std::ptrdiff_t>(begin);
    tokens_.ids.insert(tokens_.ids.end(), from, from + static_cast<std::ptrdiff_t>(kept));
  };
  tokens_.ids.reserve(first + second + pair_->marks());
  for (const auto& [kind, mark, type] : pair_->pieces) {
    if (kind == PairPiece::Kind::kMark) tokens_.ids.push_back(mark);
    if (kind == PairPiece::Kind::kFirst) take(first_->ids, first);
    if (kind == PairPiece::Kind::kSecond) take(other, second);
    types_.resize(tokens_.ids.size(), type);
  }
  if (std::count(types_.begin(), types_.end(), 0) == std::ssize(types_)) types_ = {};
}

absl::Status TextEncoding::Finish() {
  if (pair_ != nullptr) return FinishPair();
  const bool whole = reader_->done();
  if (whole && !reader_->has_pieces() && !marks_->around_nothing) {
    tokens_ = TextTokens();
    return absl::OkStatus();
  }
  AddMarks(marks_->after);
  return Truncate(*marks_, truncation_, static_cast<int64_t>(longest_), tokens_.ids);
}

}  // namespace linserve
