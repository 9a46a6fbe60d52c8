#include <torch/headeronly/version.h>

#include <string>

#include "arena.h"
#include "attention/device_plugin.h"
#include "simulated_device.h"

namespace linserve {
namespace {

absl::StatusOr<int64_t> Count() { return 2; }

std::string Describe(int64_t index) { return "simulated device " + std::to_string(index); }

bool HasBfloat16(int64_t /*index*/) { return true; }

DeviceMemory Memory(int64_t /*index*/) {
  const Arena& arena = Arena::Get();
  return {.used = arena.used(), .reserved = arena.used(), .limit = arena.limit()};
}

void LimitMemory(int64_t /*index*/, int64_t bytes) { Arena::Get().SetLimit(bytes); }

DevicePlugin Plugin() {
  RegisterSimulatedDevice();
  DevicePlugin plugin;
  plugin.abi = kDevicePluginAbi;
  plugin.torch_version = TORCH_VERSION;
  plugin.name = "simulated";
  plugin.built_for = "the CPU";
  plugin.type = c10::DeviceType::PrivateUse1;
  plugin.count = Count;
  plugin.describe = Describe;
  plugin.has_bfloat16 = HasBfloat16;
  plugin.memory = Memory;
  plugin.limit_memory = LimitMemory;
  plugin.capture = CaptureSimulated;
  return plugin;
}

}  // namespace
}  // namespace linserve

// Opened like liblinserve_cuda.so: `--device simulated:0`.
extern "C" const linserve::DevicePlugin* linserve_device_plugin() {
  static const linserve::DevicePlugin plugin = linserve::Plugin();
  return &plugin;
}
