#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "http/framing/field_reader.h"
#include "http/framing/http_fault.h"
#include "http/framing/line_reader.h"

namespace linserve {

// This is without the CRLF at its end.
inline constexpr size_t kLongestRequestLine = 4 << 10;

// Holds what a request says before its body.
struct HttpHead {
  std::string method;  // one of RFC 9110's, but CONNECT
  std::string target;
  std::map<std::string, std::string> headers;  // by their names in lower case
  uint64_t length = 0;                         // of the body, if it is not chunked
  bool chunked = false;
  bool last = false;              // of its connection
  bool expects_continue = false;  // before it sends its body
};

// Reads a head as its bytes come, by RFC 9112 to the letter: who overlooks a fault takes for the
// next request what others take for a body.
class HeadReader {
 public:
  // Takes bytes off the front of `received`, to the head's end at most. Returns true once it is
  // whole or faulty, after which it must not be called.
  bool Take(std::string_view& received);

  const std::optional<HttpFault>& fault() const { return fault_; }

  // Returns the head. REQUIRES: it is whole, and not faulty.
  HttpHead& head() { return head_; }

 private:
  void TakeLine(std::string_view& received);
  std::optional<HttpFault> ReadLine(std::string_view line);
  std::optional<HttpFault> ReadFields();
  std::optional<HttpFault> ReadHost() const;
  std::optional<HttpFault> ReadLength();
  std::optional<HttpFault> ReadCodings(const std::string& codings);
  std::optional<HttpFault> ReadExpectations();

  // Returns null if there is no such field.
  const std::string* Field(const std::string& name) const;

  LineReader lines_;
  FieldReader fields_;
  bool skipped_ = false;   // an empty line before the request line
  bool has_line_ = false;  // the request line
  bool old_ = false;       // HTTP/1.0
  HttpHead head_;
  std::optional<HttpFault> fault_;
};

}  // namespace linserve
