#pragma once

#include <string>
#include <string_view>

namespace linserve {

// A caller's or a file's text as an error message shows it: in single quotes, control characters
// as '?', cut after some 64 bytes, so that a hostile name cannot flood a log or a trailer.
std::string Quoted(std::string_view text);

}  // namespace linserve
