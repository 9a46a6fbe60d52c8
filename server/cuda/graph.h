#pragma once

#include <functional>
#include <memory>

#include "attention/device/device_plugin.h"

namespace linserve {

// Is DevicePlugin::capture, with LibTorch's CUDA graphs. Throws c10::Error, and what `work` throws.
std::unique_ptr<DeviceGraph> CaptureGraph(const std::function<void()>& work,
                                          const DeviceGraph* neighbour);

}  // namespace linserve
