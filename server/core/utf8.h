#pragma once

#include <string_view>

namespace linserve {

// Whether the text is UTF-8, as protobuf and JSON need it.
bool IsUtf8(std::string_view text);

}  // namespace linserve
