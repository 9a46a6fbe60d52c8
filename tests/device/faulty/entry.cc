// Each build of this file is the entry of another faulty plug-in. It is free of LibTorch's headers,
// so that four of them cost no more than one.
#include <string_view>

namespace linserve {
struct DevicePlugin;
const DevicePlugin* FaultyPlugin(std::string_view fault);
}  // namespace linserve

extern "C" const linserve::DevicePlugin* LINSERVE_ENTRY() {
  return linserve::FaultyPlugin(LINSERVE_FAULT);
}
