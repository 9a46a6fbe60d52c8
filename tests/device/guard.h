#pragma once

#include <c10/core/Device.h>

namespace linserve {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDevices = 2;

// Registers what LibTorch asks the simulated devices for besides operators and memory: which one a
// thread uses, their streams and events.
void RegisterGuard();

// Throws what CUDA does once a device has failed: from then on all calls for it fail.
void CheckAlive(c10::DeviceIndex index);

// Says whether what is asked for is not done yet.
bool IsStalled();

}  // namespace linserve
