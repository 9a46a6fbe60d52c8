#include "http/framing/request_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "http/framing/grammar.h"

namespace linserve {
namespace {

// "HTTP/1.1"
bool IsVersion(std::string_view text) {
  const auto is_digit = [&](size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  return text.size() == 8 && text.starts_with("HTTP/") && is_digit(5) && text[6] == '.' &&
         is_digit(7);
}

// A version with a higher second number is read as 1.1 (RFC 9110 2.5).
std::optional<HttpFault> FaultOfVersion(std::string_view version) {
  if (version[5] == '1') return std::nullopt;
  return HttpFault{505, "expected HTTP/1.1; HTTP/2 is spoken on the gRPC port"};
}

std::optional<HttpFault> FaultOfMethod(std::string_view method) {
  // Which of them a path takes is the router's to say. CONNECT has targets of its own.
  constexpr std::array kKnown = {"GET",   "HEAD", "POST",   "OPTIONS",
                                 "PATCH", "PUT",  "DELETE", "TRACE"};
  const auto is = [&](const char* name) { return method == name; };
  if (std::any_of(kKnown.begin(), kKnown.end(), is)) return std::nullopt;
  return HttpFault{501, "expected GET, HEAD, POST or OPTIONS"};
}

}  // namespace

bool HeadReader::Take(std::string_view& received) {
  while (!has_line_ && !fault_ && !received.empty()) TakeLine(received);
  if (!has_line_ || fault_) return fault_.has_value();
  fields_.Take(received);
  fault_ = fields_.ended() ? ReadFields() : fields_.fault();
  return fields_.ended() || fault_;
}

void HeadReader::TakeLine(std::string_view& received) {
  switch (lines_.Take(received, kLongestRequestLine)) {
    case LineReader::State::kGoesOn:
      return;
    case LineReader::State::kTooLong:
      fault_ = {414, "the request line is too long"};
      return;
    case LineReader::State::kMalformed:
      fault_ = {400, "the request line does not end with CRLF"};
      return;
    case LineReader::State::kWhole:
      break;
  }
  if (lines_.line().empty() && !std::exchange(skipped_, true)) return;
  fault_ = ReadLine(lines_.line());
  has_line_ = true;
}

std::optional<HttpFault> HeadReader::ReadLine(std::string_view line) {
  constexpr HttpFault kMalformed{400, "the request line is malformed"};
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  if (method_end == target_end) return kMalformed;  // or there is none
  const std::string_view method = line.substr(0, method_end);
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  const std::string_view version = line.substr(target_end + 1);
  if (!IsToken(method) || !IsVersion(version)) return kMalformed;
  if (const auto fault = FaultOfVersion(version)) return fault;
  if (const auto fault = FaultOfMethod(method)) return fault;
  if (!IsTarget(target)) return HttpFault{400, "the target of the request is malformed"};
  old_ = version.ends_with('0');
  head_.method = method;
  head_.target = target;
  return std::nullopt;
}

std::optional<HttpFault> HeadReader::ReadFields() {
  head_.headers = std::move(fields_.values());
  if (const auto fault = ReadHost()) return fault;
  if (const auto fault = ReadLength()) return fault;
  if (const auto fault = ReadExpectations()) return fault;
  const std::string* const connection = Field("connection");
  const auto options = connection == nullptr ? std::vector<std::string>{} : ElementsOf(*connection);
  head_.last = old_ || std::find(options.begin(), options.end(), "close") != options.end();
  return std::nullopt;
}

std::optional<HttpFault> HeadReader::ReadHost() const {
  const std::string* const host = Field("host");
  if (host == nullptr ? old_ : IsHost(*host)) return std::nullopt;
  return HttpFault{400, "expected one Host header, with a host and perhaps a port"};
}

std::optional<HttpFault> HeadReader::ReadLength() {
  const std::string* const codings = Field("transfer-encoding");
  const std::string* const length = Field("content-length");
  if (codings != nullptr && length != nullptr) {
    return HttpFault{400, "expected Content-Length or Transfer-Encoding, not both"};
  }
  if (codings != nullptr) return ReadCodings(*codings);
  if (length == nullptr) return std::nullopt;
  const char* const end = length->data() + length->size();
  const auto [read, error] = std::from_chars(length->data(), end, head_.length);
  if (read == end && error == std::errc()) return std::nullopt;
  return HttpFault{400, "Content-Length is no length"};
}

std::optional<HttpFault> HeadReader::ReadCodings(const std::string& codings) {
  if (old_) return HttpFault{400, "HTTP/1.0 has no Transfer-Encoding"};
  const std::vector<std::string> names = ElementsOf(codings);
  if (std::count(names.begin(), names.end(), "chunked") != 1 || names.back() != "chunked") {
    return HttpFault{400, "expected Transfer-Encoding to end with chunked, once"};
  }
  if (names.size() > 1) return HttpFault{501, "expected no Transfer-Encoding but chunked"};
  head_.chunked = true;
  return std::nullopt;
}

std::optional<HttpFault> HeadReader::ReadExpectations() {
  const std::string* const expect = Field("expect");
  if (expect == nullptr || old_) return std::nullopt;
  for (const std::string& expectation : ElementsOf(*expect)) {
    if (expectation != "100-continue") return HttpFault{417, "expected no Expect but 100-continue"};
    head_.expects_continue = true;
  }
  return std::nullopt;
}

const std::string* HeadReader::Field(const std::string& name) const {
  const auto found = head_.headers.find(name);
  return found == head_.headers.end() ? nullptr : &found->second;
}

}  // namespace linserve
