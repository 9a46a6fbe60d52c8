#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>

namespace linserve {

// A message as Triton's REST API has it: names as in the .proto file, default values too, and
// numbers as numbers (where protobuf's own JSON makes strings of 64 bits).
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

}  // namespace linserve
