#include "http/framing/line_reader.h"

#include <algorithm>

namespace linserve {

LineReader::State LineReader::Take(std::string_view& received, size_t longest) {
  if (line_.ends_with('\n')) line_.clear();
  const size_t searched = line_.ends_with('\r') ? line_.size() - 1 : line_.size();
  const std::string_view taken =
      received.substr(0, std::min(received.find('\n'), received.size() - 1) + 1);
  if (line_.size() + taken.size() > longest + 2) return State::kTooLong;
  line_.append(taken);
  received.remove_prefix(taken.size());
  const size_t end = line_.find_first_of("\r\n", searched);
  if (std::min(end, line_.size()) > longest) return State::kTooLong;
  if (end == std::string::npos || end + 1 == line_.size()) {
    return line_.ends_with('\n') ? State::kMalformed : State::kGoesOn;
  }
  return line_.compare(end, std::string::npos, "\r\n") == 0 ? State::kWhole : State::kMalformed;
}

std::string_view LineReader::line() const {
  return std::string_view(line_).substr(0, line_.size() - 2);
}

}  // namespace linserve
