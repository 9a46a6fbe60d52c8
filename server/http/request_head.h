#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// The head of a request is its line and its fields, each ended by CRLF, and an empty line. It is
// judged before httplib sees it, which bounds nothing, and takes what it has misread for the next
// request.

namespace linserve {

// In bytes. The request line's keeps the recursion of std::regex on a path to half of a thread's
// stack; that of another line is httplib's own.
inline constexpr size_t kLongestRequestLine = 4 << 10;
inline constexpr size_t kLongestLine = 8 << 10;
inline constexpr size_t kLongestHead = 64 << 10;

// Why a request is not taken, as an HTTP status and a text that needs no escape in JSON.
struct HeadFault {
  int status;
  const char* text;
};

// The size of the head that `received` begins with; 0 while its end is missing. The first
// `searched` bytes were known to hold no end.
size_t HeadSize(std::string_view received, size_t searched);

// Of a head, whole or not: whether it is too long.
std::optional<HeadFault> TooLong(std::string_view head);

// Of a whole head: whether it is too long, or says what httplib would misread.
std::optional<HeadFault> FaultOf(std::string_view head);

// A whole head without the fields of this name.
std::string WithoutField(std::string_view head, std::string_view name);

}  // namespace linserve
