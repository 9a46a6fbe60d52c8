#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace linserve {

// Reads lines as their bytes come. CRLF ends a line: another CR or LF makes it malformed.
class LineReader {
 public:
  enum class State : uint8_t { kGoesOn, kWhole, kTooLong, kMalformed };

  // Takes bytes off the front of `received`, to the line's end at most. A line has `longest` bytes
  // without its end. After a whole line the next one begins; after a fault nothing does.
  State Take(std::string_view& received, size_t longest);

  // Returns the line without its end. REQUIRES: it is whole.
  std::string_view line() const;

 private:
  std::string line_;
};

}  // namespace linserve
