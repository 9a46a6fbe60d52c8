#pragma once

#include <cstdint>

namespace linserve {

// Is what tests see of the simulated device, and do to it, besides using it.
struct SimulatedControl {
  // Counts what a GPU would be asked for since the program began: kernels and copies within the
  // device, of graphs but their replays.
  int64_t (*launches)();
  // From now on a device fails at whatever it is asked for, as a GPU does after a fault; or it
  // works again.
  void (*lose)(int64_t index, bool lost);
  // What is asked for from now on is not done yet, to whoever asks for events, and copies that wait
  // for it throw: or is.
  void (*stall)(bool stalled);
};

// The plug-in exports this function besides its entry.
inline constexpr const char* kSimulatedControl = "linserve_simulated_control";
using SimulatedControlEntry = const SimulatedControl* (*)();

}  // namespace linserve
