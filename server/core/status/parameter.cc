#include "core/status/parameter.h"

#include "absl/strings/cord.h"

namespace linserve {
namespace {

constexpr const char* kParameter = "linserve/parameter";

}  // namespace

absl::Status OfParameter(absl::Status status, const std::string& name) {
  if (!status.ok()) status.SetPayload(kParameter, absl::Cord(name));
  return status;
}

std::string ParameterOf(const absl::Status& status) {
  return std::string(status.GetPayload(kParameter).value_or(absl::Cord()));
}

}  // namespace linserve
