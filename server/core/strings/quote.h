#pragma once

#include <string>
#include <string_view>

namespace linserve {

// Shows a caller's or a file's text in an error message: in single quotes, control characters as
// '?', cut after some 64 bytes, so that a hostile name cannot flood a log or a trailer.
std::string Quoted(std::string_view text);

}  // namespace linserve
