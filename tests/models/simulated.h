#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "device/control.h"
#include "models/devices.h"
#include "support/paths.h"

namespace linserve {

// Opens the simulated device, where that was not done yet, and returns what tests can do to it.
inline const SimulatedControl& Simulated() {
  const std::string libraries = BuiltFile("lib");
  EXPECT_TRUE(PlanDevices("simulated", libraries).ok());
  void* plugin = dlopen((libraries + "/liblinserve_simulated.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
  return *reinterpret_cast<SimulatedControlEntry>(dlsym(plugin, kSimulatedControl))();
}

}  // namespace linserve
