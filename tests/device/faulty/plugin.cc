#include "attention/device/device_plugin.h"

// Each build of this file is a plug-in that cannot be used; LINSERVE_FAULT_... says why.

namespace {

[[maybe_unused]] absl::StatusOr<int64_t> None() {
  return absl::UnavailableError("this machine has no faulty device");
}

}  // namespace

#ifndef LINSERVE_FAULT_ENTRY
extern "C" const linserve::DevicePlugin* linserve_device_plugin() {
  static linserve::DevicePlugin plugin;
#ifdef LINSERVE_FAULT_ABI
  ++plugin.abi;
#endif
#ifdef LINSERVE_FAULT_TORCH
  plugin.torch_version = "1.0.0";
#endif
  plugin.count = None;
  return &plugin;
}
#endif
