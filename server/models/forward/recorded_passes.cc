#include "models/forward/recorded_passes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "attention/rows/aten.h"
#include "models/forward/ragged_input.h"
#include "models/placement/guarded.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

constexpr char kLetter = 'n';
// Up to so many rows, padding included, a device waits for the host rather than the other way.
constexpr int64_t kMostRecordedRows = 4096;
constexpr int64_t kShortest = 32;
constexpr int64_t kMostSequences = 64;

// Says whether there is one ragged input that must be given, and no other, so that a batch is its
// rows and their lengths.
bool NeedsOneRaggedInput(const Signature& signature) {
  const std::vector<InputSpec>& inputs = signature.inputs;
  if (signature.request_is_unit) return false;
  if (!std::all_of(inputs.begin() + 1, inputs.end(), [](const auto& i) { return i.optional; })) {
    return false;
  }
  return inputs[0].axes[0].letter == kLetter && IsRagged(inputs[0]);
}

}  // namespace

void RecordedPasses::Record() {
  if (placement_.on_host() || !network_.Recordable()) return;
  if (info_.padding != Padding::kPacked) return;  // only such batches are replayed
  if (!NeedsOneRaggedInput(info_.signature)) return;
  const DevicePlugin* plugin = FindDevicePlugin(placement_.device().type());
  if (plugin == nullptr || plugin->capture == nullptr) return;
  int64_t longest = kMostRecordedRows;
  for (const LengthLimit& limit : info_.signature.limits) {
    longest = std::min(longest, limit.longest);
  }
  try {
    for (int64_t length = std::min(kShortest, longest);; length = std::min(2 * length, longest)) {
      const int64_t most = std::min(kMostSequences, kMostRecordedRows / length);
      for (int64_t sequences = 1; sequences <= most; sequences *= 2) {
        if (static_cast<double>(sequences) * network_.Flops(length) > most_flops_) break;
        const Size size = {length, sequences};
        recorded_.emplace(size, RecordOne(*plugin, size));
      }
      if (length == longest) break;
    }
  } catch (const c10::Error& error) {
    recorded_.clear();
    Log(LogLevel::kWarning, "no passes are recorded", {{"because", FirstLine(error)}});
  }
}

RecordedPasses::Recorded RecordedPasses::RecordOne(const DevicePlugin& plugin,
                                                   const Size& size) const {
  const auto [length, sequences] = size;
  const InputSpec& spec = info_.signature.inputs[0];
  Recorded recorded;
  // As far as the host knows, all sequences are as long as may be.
  PlacedLayout layout{LayOut(std::vector<int64_t>(static_cast<size_t>(sequences), length), length)};
  placement_.AddTable(layout);
  auto table = std::make_shared<LayoutTable>(*layout.table);
  table->recording = true;
  layout.table = table;
  recorded.lengths = table->lengths;
  recorded.input = ZeroInput(spec, layout.rows, info_.dtype, placement_.device());

  TensorBatch batch;
  batch.padding = Padding::kBucket;
  batch.size = sequences;
  batch.inputs[spec.name] = recorded.input;
  batch.axes[kLetter] = layout;
  const auto compute = [&] {
    recorded.pass = network_.Begin(batch);
    while (recorded.pass->Step()) {
    }
  };
  compute();  // what libraries do at their first call cannot be recorded
  const DeviceGraph* neighbour =
      recorded_.empty() ? nullptr : recorded_.begin()->second.graph.get();
  recorded.graph = plugin.capture(compute, neighbour);
  recorded.graph->Replay();  // the first replay is slow
  return recorded;
}

// Finds the smallest that holds the batch; the end if none does.
std::map<RecordedPasses::Size, RecordedPasses::Recorded>::iterator RecordedPasses::Fitting(
    const PlacedLayout& layout) {
  const int64_t longest = layout.longest();
  return std::find_if(recorded_.begin(), recorded_.end(), [&](const auto& recorded) {
    const auto [length, sequences] = recorded.first;
    return length >= longest && sequences >= layout.sequences();
  });
}

std::optional<RecordedPasses::Replayed> RecordedPasses::Replay(const TensorBatch& batch) {
  if (recorded_.empty() || batch.padding != Padding::kPacked) return std::nullopt;
  if (batch.inputs.size() > 1) return std::nullopt;
  const PlacedLayout& packed = batch.axes.at(kLetter);
  const auto fitting = Fitting(packed);
  if (fitting == recorded_.end()) return std::nullopt;
  const auto [length, sequences] = fitting->first;
  const Recorded& recorded = fitting->second;

  // One copy brings to the device where each packed row goes, and then the lengths.
  const at::Tensor host = placement_.HostTensor({packed.rows + sequences}, at::kLong);
  auto* numbers = host.mutable_data_ptr<int64_t>();
  PlacedLayout padded{LayOut(packed.lengths, length)};
  for (size_t i = 0; i < packed.lengths.size(); ++i) {
    for (int64_t row = 0; row < packed.lengths[i]; ++row) *numbers++ = padded.starts[i] + row;
  }
  std::fill_n(std::copy(packed.lengths.begin(), packed.lengths.end(), numbers),
              sequences - packed.sequences(), 0);
  const at::Tensor device = placement_.ToDevice(host);

  placement_.WaitForCopies();
  recorded.input.index_copy_(
      0, device.narrow(0, 0, packed.rows),
      batch[info_.signature.inputs[0].name].to(recorded.input.scalar_type()));
  recorded.lengths.copy_(device.narrow(0, packed.rows, sequences));
  recorded.graph->Replay();
  Replayed replayed{recorded.pass, {}};
  replayed.axes[kLetter] = std::move(padded);
  return replayed;
}

}  // namespace linserve
