#include "http/framing/field_reader.h"

#include "http/framing/grammar.h"

namespace linserve {

void FieldReader::Take(std::string_view& received) {
  while (!received.empty() && !ended_ && !fault_) {
    const size_t before = received.size();
    const LineReader::State state = lines_.Take(received, kLongestField);
    bytes_ += before - received.size();
    if (state == LineReader::State::kTooLong) {
      Fail(431, "a header is too long");
    } else if (bytes_ > kLongestFields) {
      Fail(431, "the headers are too long");
    } else if (state == LineReader::State::kMalformed) {
      Fail(400, "a header line does not end with CRLF");
    } else if (state == LineReader::State::kWhole) {
      ended_ = lines_.line().empty();
      if (!ended_) Add(lines_.line());
    }
  }
}

void FieldReader::Add(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Fail(400, "a header has no colon");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trimmed(line.substr(colon + 1));
  // Neither white space before the colon nor a line that goes on the one before is a name.
  if (!IsToken(name)) return Fail(400, "the name of a header is malformed");
  if (!IsFieldValue(value)) return Fail(400, "the value of a header is malformed");
  if (++fields_ > kMostFields) return Fail(431, "there are too many headers");
  const auto [at, added] = values_.emplace(LowerCase(name), value);
  if (!added) at->second.append(", ").append(value);
}

}  // namespace linserve
