#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "attention/device/device_plugin.h"

namespace linserve {

// This is a device for LibTorch that computes on the CPU, but whose memory the host cannot touch:
// so what models and engine do with a GPU can be tried without one. Every operator checks that its
// tensors are on the device, and a stray pointer ends the process.

// Registers the device with LibTorch. Call it once.
void RegisterSimulatedDevice();

// Computes on the device: `work`, which is one launch, may use its memory. It is recorded in a
// graph that is captured meanwhile.
void RunOnSimulated(const std::function<void()>& work);

// Captures a graph as DevicePlugin::capture says. The operators run at once and again at each
// replay.
std::unique_ptr<DeviceGraph> CaptureSimulated(const std::function<void()>& work,
                                              const DeviceGraph* neighbour);

// These are what SimulatedControl says.
int64_t SimulatedLaunches();
void LoseSimulated(int64_t index, bool failed);
void StallSimulated(bool waiting);

}  // namespace linserve
