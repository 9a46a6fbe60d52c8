#include "attention/device/device_plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <string_view>

#include "core/system/own_libraries.h"
#include "core/threads/mutex.h"

namespace linserve {
namespace {

// Holds the plug-ins that are open, by name. None is ever closed: LibTorch keeps pointers to what
// they register.
class OpenPlugins {
 public:
  absl::StatusOr<const DevicePlugin*> Open(const std::string& name, const std::string& directory);
  const DevicePlugin* Find(c10::DeviceType type) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, const DevicePlugin*> plugins_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<const DevicePlugin*> Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        "cannot open the plug-in: " + LoaderError() +
        "; install LibTorch with what it needs for such devices: deploy/install does so where "
        "nvidia-smi lists a GPU");
  }
  const auto entry = reinterpret_cast<DevicePluginEntry>(dlsym(library, kDevicePluginEntry));
  if (entry == nullptr) {
    return absl::FailedPreconditionError(path + " is not a plug-in of linserve: " + LoaderError());
  }
  const DevicePlugin* plugin = entry();
  if (plugin->abi != kDevicePluginAbi) {
    return absl::FailedPreconditionError(path + " has ABI " + std::to_string(plugin->abi) +
                                         ", this linserve " + std::to_string(kDevicePluginAbi) +
                                         "; install both from the same build");
  }
  if (std::string_view(plugin->torch_version) != TORCH_VERSION) {
    return absl::FailedPreconditionError(path + " was built with LibTorch " +
                                         plugin->torch_version + ", this linserve with " +
                                         TORCH_VERSION + "; install both from the same build");
  }
  return plugin;
}

absl::StatusOr<const DevicePlugin*> OpenPlugins::Open(const std::string& name,
                                                      const std::string& directory) {
  MutexLock lock(mutex_);
  const DevicePlugin*& plugin = plugins_[name];
  if (plugin == nullptr) {
    const std::string path = directory + "/liblinserve_" + name + ".so";
    if (!std::filesystem::exists(path)) {
      return absl::NotFoundError("there is no plug-in " + path);
    }
    auto loaded = Load(path);
    if (!loaded.ok()) return loaded;
    plugin = *loaded;
  }
  return plugin;
}

const DevicePlugin* OpenPlugins::Find(c10::DeviceType type) const {
  MutexLock lock(mutex_);
  for (const auto& [name, plugin] : plugins_) {
    if (plugin != nullptr && plugin->type == type) return plugin;
  }
  return nullptr;
}

OpenPlugins& Plugins() {
  static auto* plugins = new OpenPlugins;
  return *plugins;
}

}  // namespace

absl::StatusOr<const DevicePlugin*> OpenDevicePlugin(const std::string& name,
                                                     const std::string& directory) {
  return Plugins().Open(name, directory);
}

const DevicePlugin* FindDevicePlugin(c10::DeviceType type) { return Plugins().Find(type); }

void CheckNotRecording(const PlacedLayout& layout) {
  TORCH_CHECK(!layout.table || !layout.table->recording,
              "the device has no kernel that takes these sequences");
}

const DeviceKernels& KernelsFor(const at::Tensor& tensor) {
  static const DeviceKernels none;
  if (tensor.is_cpu()) return none;
  const DevicePlugin* plugin = FindDevicePlugin(tensor.device().type());
  return plugin != nullptr ? plugin->kernels : none;
}

}  // namespace linserve
