#include "core/sequence/batch.h"

#include <array>

namespace linserve {
namespace {

constexpr std::array<std::string_view, 5> kReasonNames = {"full", "delay", "idle", "length",
                                                          "drain"};

}  // namespace

std::string_view Name(Padding padding) { return kPaddingNames[static_cast<size_t>(padding)]; }

std::string_view Name(CloseReason reason) { return kReasonNames[static_cast<size_t>(reason)]; }

Tensor Crop(const AxisLayout& layout, const Tensor& rows, size_t index) {
  return rows.Rows(layout.starts[index], layout.starts[index] + layout.lengths[index]);
}

}  // namespace linserve
