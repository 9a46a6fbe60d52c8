#include "client/library/calls.h"

namespace linserve {

std::optional<Protocol> ProtocolFromName(std::string_view name) {
  if (name == "linserve") return Protocol::kLinserve;
  if (name == "oip") return Protocol::kOip;
  return std::nullopt;
}

const char* Name(HealthState state) {
  switch (state) {
    case HealthState::kServing:
      return "SERVING";
    case HealthState::kNotServing:
      return "NOT_SERVING";
    case HealthState::kServiceUnknown:
      return "SERVICE_UNKNOWN";
    case HealthState::kUnknown:
      break;
  }
  return "UNKNOWN";
}

}  // namespace linserve
