#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http/framing/field_reader.h"
#include "http/framing/http_fault.h"
#include "http/framing/line_reader.h"
#include "http/framing/request_head.h"

namespace linserve {

// This includes the extensions that may follow a chunk's size, and that nobody has defined.
inline constexpr size_t kLongestChunkLine = 256;

// Reads a body as its bytes come, of the length that its head says or in chunks, by RFC 9112 6 and
// 7 to the letter. Trailers are read and forgotten; they must not say a length (RFC 9110 6.5.1).
class BodyReader {
 public:
  BodyReader() = default;  // of no body
  explicit BodyReader(const HttpHead& head);

  // Takes bytes off the front of `received`, to the body's end at most, and returns those of them
  // that are the body's own: some, unless `received` is at its end or this is.
  std::string_view Take(std::string_view& received);

  bool ended() const { return part_ == Part::kEnd; }
  // Returns how many bytes follow at least.
  uint64_t left() const { return left_; }
  const std::optional<HttpFault>& fault() const { return fault_; }

 private:
  enum class Part : uint8_t { kData, kSize, kDataEnd, kTrailers, kEnd };

  std::string_view TakeData(std::string_view& received);
  void TakeSize(std::string_view& received);
  void TakeDataEnd(std::string_view& received);
  void TakeTrailers(std::string_view& received);
  // Returns true if there is a line.
  bool TakeLine(std::string_view& received, size_t longest, const char* malformed);

  Part part_ = Part::kEnd;
  bool chunked_ = false;
  uint64_t left_ = 0;  // of the body, or of the chunk
  LineReader lines_;
  FieldReader trailers_;
  std::optional<HttpFault> fault_;
};

}  // namespace linserve
