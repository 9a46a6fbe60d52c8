#include <string_view>

#include "attention/device/device_plugin.h"

namespace linserve {
namespace {

absl::StatusOr<int64_t> None() {
  return absl::UnavailableError("this machine has no faulty device");
}

}  // namespace

// Returns a plug-in that cannot be used for this reason.
const DevicePlugin* FaultyPlugin(std::string_view fault) {
  static DevicePlugin plugin;
  if (fault == "abi") ++plugin.abi;
  if (fault == "torch") plugin.torch_version = "1.0.0";
  plugin.count = None;
  return &plugin;
}

}  // namespace linserve
