#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// These are the words of a request, by RFC 9110 (HTTP), 9112 (HTTP/1.1) and 3986 (URIs), to the
// letter.

namespace linserve {

bool IsToken(std::string_view text);                              // RFC 9110 5.6.2
bool IsFieldValue(std::string_view text);                         // RFC 9110 5.5
bool IsHost(std::string_view text);                               // RFC 9110 7.2; may be empty
bool AreChunkExtensions(std::string_view text);                   // RFC 9112 7.1.1
bool IsTarget(std::string_view text);                             // RFC 9112 3.2.1 or 3.2.2
bool SameButCase(std::string_view left, std::string_view right);  // of ASCII

// Returns the text in lower case.
std::string LowerCase(std::string_view text);

// Returns the text without the white space around it.
std::string_view Trimmed(std::string_view text);

// Returns the elements of a list in lower case, without empty ones (RFC 9110 5.6.1.2). Commas in
// quotes count as others, so it is for lists whose elements have none.
std::vector<std::string> ElementsOf(std::string_view list);

// Returns how much a choice is wanted, from 0 to 1, by the elements of a list with weights (RFC
// 9110 12.4.2 and 12.5); nullopt if it is not in the list. What else an element says is overlooked.
std::optional<double> WeightOf(const std::vector<std::string>& wanted, std::string_view choice);

// Returns the path of a target, decoded. REQUIRES: IsTarget().
std::string PathOf(std::string_view target);

}  // namespace linserve
