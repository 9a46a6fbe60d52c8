#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "http/framing/http_fault.h"
#include "http/framing/line_reader.h"

namespace linserve {

// These bound fields in bytes and in number.
inline constexpr size_t kLongestField = 8 << 10;
inline constexpr size_t kLongestFields = 64 << 10;  // of a head, or of the trailers after a body
inline constexpr size_t kMostFields = 256;

// Reads the fields of a head or of trailers, each on its line, up to an empty line.
class FieldReader {
 public:
  // Takes bytes off the front of `received`, to the empty line at most.
  void Take(std::string_view& received);

  // Neither is set while fields go on.
  bool ended() const { return ended_; }
  const std::optional<HttpFault>& fault() const { return fault_; }

  // Returns the values by names in lower case. Those of a name that came several times are joined
  // by ", ", so that where one is expected it is found malformed.
  std::map<std::string, std::string>& values() { return values_; }

 private:
  void Add(std::string_view line);
  void Fail(int status, const char* text) { fault_ = {status, text}; }

  LineReader lines_;
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;
  size_t fields_ = 0;
  bool ended_ = false;
  std::optional<HttpFault> fault_;
};

}  // namespace linserve
