#include "serving/model_kind.h"

#include <string>

#include "core/strings/quote.h"

namespace linserve {
namespace {

absl::Status Other(const ServedModel& model, const std::string& wanted) {
  std::string is;
  switch (KindOf(model)) {
    case ModelKind::kEmbedding:
      is = "it gives embeddings: use /embed, /v1/embeddings or tei.v1.Embed";
      break;
    case ModelKind::kClassifier:
      is = "it scores " + std::to_string(model.engine->info().labels->size()) +
           " classes: use /predict or tei.v1.Predict";
      break;
    case ModelKind::kReranker:
      is = "it ranks texts: use /rerank, /v1/rerank or tei.v1.Rerank";
      break;
  }
  return absl::UnimplementedError("model " + Quoted(model.name) + " is no " + wanted + "; " + is);
}

}  // namespace

ModelKind KindOf(const ServedModel& model) {
  const auto& labels = model.engine->info().labels;
  if (labels == nullptr) return ModelKind::kEmbedding;
  return labels->size() == 1 ? ModelKind::kReranker : ModelKind::kClassifier;
}

absl::Status CheckEmbeds(const ServedModel& model) {
  if (KindOf(model) == ModelKind::kEmbedding) return absl::OkStatus();
  return Other(model, "embedding model");
}

absl::Status CheckClassifies(const ServedModel& model) {
  if (KindOf(model) != ModelKind::kEmbedding) return absl::OkStatus();
  return Other(model, "classifier");
}

absl::Status CheckRanks(const ServedModel& model) {
  if (KindOf(model) == ModelKind::kReranker) return absl::OkStatus();
  return Other(model, "re-ranker");
}

}  // namespace linserve
