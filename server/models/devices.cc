#include "models/devices.h"

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "attention/device/device_plugin.h"
#include "core/strings/quote.h"
#include "core/system/own_libraries.h"

namespace linserve {
namespace {

// "cuda:1" is {"cuda", 1}; "cuda" is all of them.
struct NamedDevice {
  std::string name;
  std::optional<int64_t> index;
};

std::optional<NamedDevice> Parse(const std::string& text) {
  NamedDevice device;
  const size_t colon = text.find(':');
  device.name = text.substr(0, colon);
  if (device.name.empty() ||
      device.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos) {
    return std::nullopt;
  }
  if (colon == std::string::npos) return device;
  int64_t index = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, index);
  if (parsed.ec != std::errc() || parsed.ptr != end || index < 0) return std::nullopt;
  device.index = index;
  return device;
}

absl::Status Unknown(const std::string& choice) {
  return absl::InvalidArgumentError(
      "device " + Quoted(choice) +
      " is none of auto, cpu, cuda, cuda:N or several like cuda:0,cuda:1");
}

std::string Whole(const std::string& name, int64_t index) {
  return name + ":" + std::to_string(index);
}

// Without a number those are left out that cannot be used, unless none can.
absl::Status Add(const NamedDevice& device, const DevicePlugin& plugin, DevicePlan& plan) {
  const auto count = plugin.count();
  if (!count.ok()) return count.status();
  if (device.index && *device.index >= *count) {
    return absl::InvalidArgumentError("device " + Whole(device.name, *device.index) +
                                      " does not exist; there is " + Whole(device.name, 0) +
                                      (*count > 1 ? " to " + Whole(device.name, *count - 1) : ""));
  }
  const int64_t first = device.index.value_or(0);
  const int64_t last = device.index.value_or(*count - 1);
  absl::Status usable;
  bool any = false;
  for (int64_t index = first; index <= last; ++index) {
    try {
      const absl::Status own = plugin.usable(index);
      usable.Update(own);
      if (!own.ok()) continue;
      plan.descriptions.push_back(plugin.describe(index));
    } catch (const c10::Error& error) {
      return absl::UnavailableError(error.what_without_backtrace());
    }
    plan.devices.push_back(Whole(device.name, index));
    any = true;
  }
  return any ? absl::OkStatus() : usable;
}

absl::StatusOr<DevicePlan> PlanNamed(const std::string& choice, const std::string& plugins) {
  std::vector<NamedDevice> devices;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(choice, ','))) {
    const std::optional<NamedDevice> device = Parse(part);
    if (!device) return Unknown(choice);
    devices.push_back(*device);
  }
  DevicePlan plan;
  for (const NamedDevice& device : devices) {
    const auto plugin = OpenDevicePlugin(device.name, plugins);
    if (absl::IsNotFound(plugin.status()) && device.name != "cuda") return Unknown(choice);
    if (!plugin.ok()) {
      return absl::Status(plugin.status().code(), "device " + Quoted(choice) + " cannot be used: " +
                                                      std::string(plugin.status().message()));
    }
    if (absl::Status status = Add(device, **plugin, plan); !status.ok()) return status;
  }
  return plan;
}

// Returns whether this library of the GPUs' driver is there. It stays open, since what computes on
// a GPU opens it, too.
bool HasDriver(const std::string& driver) {
  return dlopen(driver.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

// Names what kept "auto" from a GPU, as a label of a metric.
std::string FallbackName(const absl::Status& status) {
  if (absl::IsNotFound(status)) return "no_plugin";
  return absl::IsUnavailable(status) ? "no_device" : "unusable_plugin";
}

// REQUIRES: a device of a plan.
struct OpenDevice {
  explicit OpenDevice(const std::string& name)
      : device(name), plugin(*FindDevicePlugin(device.type())) {}

  c10::Device device;
  const DevicePlugin& plugin;
};

}  // namespace

DeviceUse UseOf(const std::string& device) {
  try {
    const OpenDevice open(device);
    const DeviceMemory memory = open.plugin.memory(open.device.index());
    return {memory.used, memory.reserved, memory.limit};
  } catch (const c10::Error&) {
    return {};  // it is lost, which its replicas say
  }
}

absl::Status LimitMemory(const std::string& device, int64_t bytes) {
  try {
    const OpenDevice open(device);
    open.plugin.limit_memory(open.device.index(), bytes);
    return absl::OkStatus();
  } catch (const c10::Error& error) {
    return absl::UnavailableError(device + ": " + error.what_without_backtrace());
  }
}

absl::StatusOr<DevicePlan> PlanDevices(const std::string& choice) {
  const auto libraries = LibraryDirectory();
  return libraries.ok() ? PlanDevices(choice, *libraries) : libraries.status();
}

absl::StatusOr<DevicePlan> PlanDevices(const std::string& choice, const std::string& plugins,
                                       const std::string& driver) {
  DevicePlan cpu;
  cpu.devices = {"cpu"};
  if (choice == "cpu") return cpu;
  if (choice != "auto") return PlanNamed(choice, plugins);
  if (!HasDriver(driver)) {
    cpu.fallback = "no_device";
    cpu.reason = "no GPU was found: there is no NVIDIA driver (" + driver + ")";
    return cpu;
  }
  auto plan = PlanNamed("cuda", plugins);
  if (plan.ok()) return plan;
  cpu.fallback = FallbackName(plan.status());
  cpu.reason = std::string(plan.status().message());
  return cpu;
}

}  // namespace linserve
