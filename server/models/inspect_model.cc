#include "models/inspect_model.h"

#include <utility>

#include "core/sequence/item.h"
#include "core/sequence/signature.h"
#include "models/built_network.h"
#include "models/caught.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model_directory.h"

namespace linserve {
namespace {

// The length that the cost is told for is the longest, and 512 where there is no limit.
int64_t TypicalLength(const Signature& signature) {
  if (const int64_t longest = LongestFor(signature, Item(), 'n'); longest > 0) return longest;
  return signature.limits.empty() ? 512 : signature.limits[0].longest;
}

absl::StatusOr<ModelReport> Inspect(const std::string& directory, bool look_at_weights) {
  auto config = ReadModelDirectory(directory);
  if (!config.ok()) return config.status();
  const BuiltNetwork built = BuiltNetwork::From(config->network);
  ModelReport report;
  report.info = built.Describe(config->network.architecture);
  for (const Parameter& parameter : built.parameters) {
    report.parameters.push_back({parameter.name(), parameter.shape});
  }
  NetworkNotes notes = built.network->Notes();
  report.facts = std::move(notes.facts);
  report.warnings = std::move(notes.warnings);
  report.warnings.insert(report.warnings.end(), config->warnings.begin(), config->warnings.end());
  report.length = TypicalLength(report.info.signature);
  report.flops_per_token = built.network->Flops(report.length) / static_cast<double>(report.length);
  auto file = ReadModelTensors(directory, *config);
  if (!file.ok()) return file.status();
  const AlignedCheckpoint checkpoint =
      AlignCheckpoint(built.parameters, *std::move(file), config->names);
  report.prefix = checkpoint.prefix();
  report.left_out = checkpoint.left_out;
  if (std::string warning = checkpoint.Warning(); !warning.empty()) {
    report.warnings.push_back(std::move(warning));
  }
  report.difference = checkpoint.difference.ToString();
  if (!look_at_weights) return report;
  report.nonfinite = NonfiniteWeights(built.parameters, checkpoint, DType::kF32);
  return report;
}

}  // namespace

absl::StatusOr<ModelReport> InspectModel(const std::string& directory, bool look_at_weights) {
  return Caught(directory, [&] { return Inspect(directory, look_at_weights); });
}

}  // namespace linserve
