#include <string>
#include <string_view>

#include "attention/device/device_plugin.h"

namespace linserve {
namespace {

absl::StatusOr<int64_t> None() {
  return absl::UnavailableError("this machine has no faulty device");
}

absl::StatusOr<int64_t> Two() { return 2; }

std::string DescribeFaulty(int64_t index) { return "faulty device " + std::to_string(index); }

absl::Status AllTooOld(int64_t index) {
  return absl::UnavailableError(DescribeFaulty(index) + " is too old");
}
absl::Status FirstTooOld(int64_t index) { return index == 0 ? AllTooOld(0) : absl::OkStatus(); }

}  // namespace

// Returns a plug-in that cannot be used for this reason; with "old" its second device can.
const DevicePlugin* FaultyPlugin(std::string_view fault) {
  static DevicePlugin plugin;
  if (fault == "abi") ++plugin.abi;
  if (fault == "torch") plugin.torch_version = "1.0.0";
  const bool old = fault == "old" || fault == "ancient";
  plugin.count = old ? Two : None;
  plugin.describe = DescribeFaulty;
  plugin.usable = fault == "old" ? FirstTooOld : AllTooOld;
  return &plugin;
}

}  // namespace linserve
