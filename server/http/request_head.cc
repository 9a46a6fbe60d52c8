#include "http/request_head.h"

#include <strings.h>

#include <algorithm>
#include <array>

namespace linserve {
namespace {

constexpr std::string_view kHeadEnd = "\n\r\n";
constexpr std::string_view kLineEnd = "\r\n";

// The next line without its end, which is taken off `rest`. REQUIRES: there is one.
std::string_view TakeLine(std::string_view& rest) {
  const size_t size = rest.find(kLineEnd);
  const std::string_view line = rest.substr(0, size);
  rest.remove_prefix(size + kLineEnd.size());
  return line;
}

bool IsLine(std::string_view line) {
  return line.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

std::string_view NameOf(std::string_view field) { return field.substr(0, field.find(':')); }

// REQUIRES: IsField().
std::string_view ValueOf(std::string_view field) {
  field.remove_prefix(field.find(':') + 1);
  field.remove_prefix(std::min(field.find_first_not_of(" \t"), field.size()));
  return field.substr(0, field.find_last_not_of(" \t") + 1);
}

bool SameButCase(std::string_view left, std::string_view right) {
  return left.size() == right.size() && ::strncasecmp(left.data(), right.data(), left.size()) == 0;
}

bool IsField(std::string_view line) {
  const std::string_view name = NameOf(line);
  return IsLine(line) && name.size() < line.size() && !name.empty() &&
         name.find_first_of(" \t") == std::string_view::npos;
}

bool IsLength(std::string_view value) {
  constexpr size_t kMostDigits = 18;
  return !value.empty() && value.size() <= kMostDigits &&
         value.find_first_not_of("0123456789") == std::string_view::npos;
}

// What the fields say of the body.
struct Body {
  int lengths = 0;  // so many of them
  bool empty = true;
  int codings = 0;
};

// Which bodies httplib reads, of the methods that it knows.
std::optional<HeadFault> FaultOfBody(std::string_view method, const Body& body) {
  constexpr std::array kWithBody = {"POST", "PUT", "PATCH"};
  constexpr std::array kWithout = {"GET", "HEAD", "OPTIONS"};
  if (body.codings + body.lengths > 1) return HeadFault{400, "the length of the body is ambiguous"};
  const auto is = [&](const char* name) { return method == name; };
  if (std::any_of(kWithBody.begin(), kWithBody.end(), is)) return std::nullopt;
  if (method == "DELETE" && body.codings == 0) return std::nullopt;
  if (method == "PRI") return HeadFault{405, "HTTP/2 is spoken on the gRPC port"};
  if (method != "DELETE" && std::none_of(kWithout.begin(), kWithout.end(), is)) {
    return HeadFault{405, "expected GET, HEAD or POST"};
  }
  if (body.empty && body.codings == 0) return std::nullopt;
  return HeadFault{400, "a body is expected with POST only"};
}

std::optional<HeadFault> FaultOfField(std::string_view field, Body& body) {
  if (field.size() > kLongestLine) return HeadFault{431, "a header is too long"};
  if (!IsField(field)) return HeadFault{400, "malformed header"};
  const std::string_view value = ValueOf(field);
  if (SameButCase(NameOf(field), "Content-Length")) {
    if (!IsLength(value)) return HeadFault{400, "Content-Length is no length"};
    ++body.lengths;
    body.empty = value.find_first_not_of('0') == std::string_view::npos;
  }
  if (SameButCase(NameOf(field), "Transfer-Encoding")) {
    if (!SameButCase(value, "chunked")) {
      return HeadFault{501, "expected no Transfer-Encoding but chunked"};
    }
    ++body.codings;
  }
  return std::nullopt;
}

}  // namespace

size_t HeadSize(std::string_view received, size_t searched) {
  const size_t found = received.find(kHeadEnd, searched - std::min(searched, kHeadEnd.size() - 1));
  return found == std::string_view::npos ? 0 : found + kHeadEnd.size();
}

std::optional<HeadFault> TooLong(std::string_view head) {
  if (std::min(head.find('\n'), head.size()) > kLongestRequestLine) {
    return HeadFault{414, "the request line is too long"};
  }
  if (head.size() > kLongestHead) return HeadFault{431, "the headers are too long"};
  return std::nullopt;
}

std::optional<HeadFault> FaultOf(std::string_view head) {
  if (const auto too_long = TooLong(head)) return too_long;
  const std::string_view line = TakeLine(head);
  if (!IsLine(line)) return HeadFault{400, "malformed request line"};
  Body body;
  while (head != kLineEnd) {
    if (const auto fault = FaultOfField(TakeLine(head), body)) return fault;
  }
  return FaultOfBody(line.substr(0, line.find(' ')), body);
}

std::string WithoutField(std::string_view head, std::string_view name) {
  std::string kept;
  while (!head.empty()) {
    const std::string_view line = TakeLine(head);
    if (!SameButCase(NameOf(line), name)) kept.append(line).append(kLineEnd);
  }
  return kept;
}

}  // namespace linserve
