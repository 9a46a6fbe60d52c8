#include "text/tokenizer.h"

#include <limits>

#include "text/text_encoding.h"

namespace linserve {

std::optional<int64_t> Tokenizer::end_mark() const {
  return marks_.after.empty() ? std::nullopt : std::optional<int64_t>(marks_.after.back());
}

absl::StatusOr<std::vector<int64_t>> Tokenizer::Encode(std::string_view text,
                                                       const Marks& marks) const {
  TextEncoding encoding(*this, text, Truncation::kNone, 0, marks);
  size_t budget = std::numeric_limits<size_t>::max();
  absl::Status status = encoding.Advance(budget);
  if (status.ok()) status = encoding.Finish();
  if (!status.ok()) return status;
  return encoding.ids();
}

absl::Status Truncate(const Marks& marks, Truncation truncation, int64_t longest,
                      std::vector<int64_t>& ids) {
  const auto most = static_cast<size_t>(longest);
  if (longest == 0 || ids.size() <= most) return absl::OkStatus();
  if (truncation == Truncation::kNone) {
    return absl::InvalidArgumentError("the text has more than the " + std::to_string(longest) +
                                      " tokens that the model takes; shorten it, or ask for "
                                      "truncation (left or right)");
  }
  const auto& [before, after, around_nothing] = marks;
  const size_t all_marks = before.size() + after.size();
  // What stands between the marks is cut at one side. Ids that were dropped while the text was read
  // are missing there.
  const size_t kept = most > all_marks ? most - all_marks : 0;
  const auto begin = truncation == Truncation::kRight
                         ? ids.begin() + static_cast<std::ptrdiff_t>(before.size())
                         : ids.end() - static_cast<std::ptrdiff_t>(after.size() + kept);
  std::vector<int64_t> left = before;
  left.insert(left.end(), begin, begin + static_cast<std::ptrdiff_t>(kept));
  left.insert(left.end(), after.begin(), after.end());
  // Where not even the marks have room, the last ones stay.
  if (left.size() > most) left.erase(left.begin(), left.end() - longest);
  ids = std::move(left);
  return absl::OkStatus();
}

}  // namespace linserve
