#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "attention/device/device_plugin.h"
#include "engine/model.h"
#include "models/network/network.h"
#include "models/placement/placement.h"

namespace linserve {

// Passes over small batches on a device, recorded for some numbers of sequences and lengths and
// repeated for each batch that fits: asking the device for a recorded pass takes the host as long
// as asking for one kernel, not for hundreds. What a pass is recorded for is padded; the lengths
// within it are read anew each time, so that the rows are those of any pass, to within rounding.
class RecordedPasses {
 public:
  // So much is computed, padding included, in the time in which a host asks for a dozen layers:
  // recorded, a larger pass would take as long.
  static constexpr double kMostFlops = 3e11;

  // Network, info and placement must outlive this.
  RecordedPasses(const Network& network, const ModelInfo& info, const Placement& placement,
                 double most_flops = kMostFlops)
      : network_(network), info_(info), placement_(placement), most_flops_(most_flops) {}

  // Records the passes, where network and device can. Elsewhere it does nothing, and Replay() gives
  // nothing.
  void Record();

  // Holds a pass that is complete, or will be when the device has come to it, and how its rows are
  // laid out. It is valid until the next Replay().
  struct Replayed {
    std::shared_ptr<Pass> pass;
    std::map<char, PlacedLayout> axes;
  };
  // Replays a recorded pass that the batch fits; nullopt if none does.
  std::optional<Replayed> Replay(const TensorBatch& batch);

 private:
  using Size = std::pair<int64_t, int64_t>;  // length of each sequence and their number
  struct Recorded {
    at::Tensor input;    // [sequences · length, ...]
    at::Tensor lengths;  // [sequences]; 0: there is none in its place
    std::shared_ptr<Pass> pass;
    std::unique_ptr<DeviceGraph> graph;
  };

  Recorded RecordOne(const DevicePlugin& plugin, const Size& size) const;
  std::map<Size, Recorded>::iterator Fitting(const PlacedLayout& layout);

  const Network& network_;
  const ModelInfo& info_;
  const Placement& placement_;
  const double most_flops_;  // of a pass
  std::map<Size, Recorded> recorded_;
};

}  // namespace linserve
