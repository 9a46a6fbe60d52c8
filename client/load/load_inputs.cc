#include "client/load/load_inputs.h"

#include <random>
#include <utility>

#include "core/workload/random_item.h"

namespace linserve {

absl::StatusOr<std::vector<EmbedCall>> MakeLoadCalls(const ModelDescription& model,
                                                     const LengthDistribution& lengths,
                                                     const LoadInputOptions& options) {
  auto status = CheckLengths(model.signature, model.name, lengths);
  if (!status.ok()) return status;
  std::mt19937_64 random(options.seed);
  std::vector<EmbedCall> calls;
  size_t bytes = 0;
  while (calls.empty() || (calls.size() < options.requests && bytes < options.max_bytes)) {
    EmbedCall call{.model = model.name,
                   .version = options.version,
                   .options = options.options,
                   .priority = options.priority};
    for (size_t i = 0; i < options.sequences; ++i) {
      Item item = RandomItem(model.signature, lengths, random);
      call.sequences.push_back({"", std::move(item.inputs)});
      for (const auto& [name, tensor] : call.sequences.back().inputs) bytes += tensor.byte_size();
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace linserve
