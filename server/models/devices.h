#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "telemetry/metrics.h"

namespace linserve {

// Says which devices models compute on. This header is free of LibTorch, like
// models/model_loader.h.
struct DevicePlan {
  std::vector<std::string> devices;  // "cpu", or "cuda:0", "cuda:1", ...: replicas take turns
  // These are set where "auto" found no GPU: one word for a metric, and a sentence for the log.
  std::string fallback;
  std::string reason;
  std::vector<std::string> descriptions;  // of each device but the CPU: "NVIDIA H200, 139.8 GiB"

  // Returns how many devices there are besides the CPU.
  int64_t accelerators() const {
    return devices.front() == "cpu" ? 0 : static_cast<int64_t>(devices.size());
  }
};

// Returns the use of a device's memory, of one that a plan names and not the CPU; zeros if it does
// not answer. Thread-safe.
DeviceUse UseOf(const std::string& device);
// Bounds what the pool may hold; what does not fit is RESOURCE_EXHAUSTED.
absl::Status LimitMemory(const std::string& device, int64_t bytes);

// Plans on which devices to compute. `choice` is cpu; cuda:N, or several with commas between; cuda,
// which is all that can be used; or auto: those, and the CPU without any. A device other than the
// CPU needs the plug-in liblinserve_NAME.so in ../lib beside the program; auto does not look for it
// where there is no driver. Call it before a model is loaded. INVALID_ARGUMENT says what there is;
// the codes of OpenDevicePlugin() say what is missing; UNAVAILABLE says why there is no device.
absl::StatusOr<DevicePlan> PlanDevices(const std::string& choice);
// Does this with the plug-ins of another directory, and where `driver` is the GPUs' driver.
absl::StatusOr<DevicePlan> PlanDevices(const std::string& choice, const std::string& plugins,
                                       const std::string& driver = "libcuda.so.1");

}  // namespace linserve
