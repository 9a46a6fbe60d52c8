#include "http/framing/body_reader.h"

#include <charconv>
#include <system_error>

#include "http/framing/grammar.h"

namespace linserve {

BodyReader::BodyReader(const HttpHead& head) : chunked_(head.chunked), left_(head.length) {
  if (left_ > 0) part_ = Part::kData;
  if (chunked_) part_ = Part::kSize;
}

std::string_view BodyReader::Take(std::string_view& received) {
  while (!received.empty() && !fault_) {
    switch (part_) {
      case Part::kData:
        return TakeData(received);
      case Part::kSize:
        TakeSize(received);
        break;
      case Part::kDataEnd:
        TakeDataEnd(received);
        break;
      case Part::kTrailers:
        TakeTrailers(received);
        break;
      case Part::kEnd:
        return {};
    }
  }
  return {};
}

std::string_view BodyReader::TakeData(std::string_view& received) {
  const std::string_view data = received.substr(0, left_);
  received.remove_prefix(data.size());
  left_ -= data.size();
  if (left_ == 0) part_ = chunked_ ? Part::kDataEnd : Part::kEnd;
  return data;
}

void BodyReader::TakeSize(std::string_view& received) {
  constexpr const char* kMalformed = "the size of a chunk is malformed";
  if (!TakeLine(received, kLongestChunkLine, kMalformed)) return;
  std::string_view line = lines_.line();
  // It reads neither a sign nor 0x.
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  if (error != std::errc() || !AreChunkExtensions(line)) fault_ = {400, kMalformed};
  part_ = left_ > 0 ? Part::kData : Part::kTrailers;
}

void BodyReader::TakeDataEnd(std::string_view& received) {
  if (TakeLine(received, 0, "a chunk is longer than its size")) part_ = Part::kSize;
}

void BodyReader::TakeTrailers(std::string_view& received) {
  trailers_.Take(received);
  fault_ = trailers_.fault();
  if (!trailers_.ended()) return;
  part_ = Part::kEnd;
  const auto& names = trailers_.values();
  if (names.contains("content-length") || names.contains("transfer-encoding")) {
    fault_ = {400, "a length stands in the trailers"};
  }
}

bool BodyReader::TakeLine(std::string_view& received, size_t longest, const char* malformed) {
  const LineReader::State state = lines_.Take(received, longest);
  if (state == LineReader::State::kWhole) return true;
  if (state != LineReader::State::kGoesOn) fault_ = {400, malformed};
  return false;
}

}  // namespace linserve
