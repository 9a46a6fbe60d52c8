#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>

namespace linserve {

// Writes a message as Triton's REST API does: with names as in the .proto file, with default
// values, too, and with numbers as numbers (where protobuf's own JSON makes strings of 64 bits).
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

}  // namespace linserve
