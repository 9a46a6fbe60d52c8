#include "serving/requests/embeddings_request.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/sequence/truncation.h"
#include "core/status/parameter.h"
#include "core/strings/quote.h"
#include "serving/admission.h"
#include "serving/model_kind.h"

namespace linserve {
namespace {

absl::StatusOr<const InputSpec*> TokenInput(const ServedModel& model) {
  const InputSpec* found = nullptr;
  for (const InputSpec& input : model.engine->info().signature.inputs) {
    if (input.optional) continue;
    if (found != nullptr || input.kind != InputKind::kToken) {
      return OfParameter(
          absl::InvalidArgumentError("model " + Quoted(model.name) +
                                     " does not take one sequence of token ids; use /v2/models/" +
                                     model.name + "/infer"),
          "model");
    }
    found = &input;
  }
  return found;
}

size_t CountOf(const SequenceInput& sequences) {
  return std::visit([](const auto& all) { return all.size(); }, sequences);
}

int64_t BytesOf(const SequenceInput& sequences) {
  return std::visit(
      [](const auto& all) {
        size_t bytes = 0;
        for (const auto& one : all) bytes += one.size() * sizeof(one[0]);
        return static_cast<int64_t>(bytes);
      },
      sequences);
}

// Checks that the model's vectors may have so many dimensions.
absl::Status CheckDimensions(const ServedModel& model, int64_t dimensions) {
  const std::vector<Axis>& axes = model.engine->info().signature.outputs[0].axes;
  const int64_t width = axes.empty() ? 0 : axes.back().size;
  const std::vector<int64_t>& fewer = model.dimensions;
  if (dimensions == 0 || dimensions == width ||
      std::find(fewer.begin(), fewer.end(), dimensions) != fewer.end()) {
    return absl::OkStatus();
  }
  std::string expected = std::to_string(width);
  for (const int64_t one : fewer) expected += ", " + std::to_string(one);
  return OfParameter(
      absl::InvalidArgumentError("'dimensions' is " + std::to_string(dimensions) + ", but model " +
                                 Quoted(model.name) + " gives vectors of " + expected +
                                 (fewer.empty() ? "; it was not trained for others" : "")),
      "dimensions");
}

// Checks the ids here, too, since the engine would name the model's input, for which these APIs
// have no word, and not the cause.
absl::Status CheckIds(const ServedModel& model, const InputSpec& input,
                      const EmbeddingsQuery& query) {
  for (const auto& ids : std::get<IdSequences>(query.sequences)) {
    for (const int64_t id : ids) {
      if (id >= 0 && id < input.vocabulary) continue;
      return OfParameter(
          absl::InvalidArgumentError(
              "the token id " + std::to_string(id) + " is not one of model " + Quoted(model.name) +
              ", which has 0 to " + std::to_string(input.vocabulary - 1) +
              ": perhaps another tokenizer made it" + query.cause_of_foreign_ids),
          "input");
    }
  }
  return absl::OkStatus();
}

// Returns the first elements of a vector; of one of length one, these have length one again.
Tensor FirstElements(const Tensor& vector, int64_t count, bool normalized) {
  if (count == 0 || count == vector.elements()) return vector;
  if (!normalized) return vector.Rows(0, count);
  std::vector<float> first(vector.data<float>(), vector.data<float>() + count);
  const double square = std::inner_product(first.begin(), first.end(), first.begin(), 0.0);
  const auto scale = static_cast<float>(square > 0 ? 1 / std::sqrt(square) : 0);
  for (float& element : first) element *= scale;
  return Tensor::FromFloats({count}, first);
}

}  // namespace

Pooling PoolingOf(const ServedModel& model) {
  return model.default_pooling == Pooling::kNone ? Pooling::kMean : model.default_pooling;
}

void EmbeddingsRequestState::Submit(ServiceContext& service, EmbeddingsQuery query,
                                    std::optional<Inflight::Reservation> place) {
  if (place) TakeOver(*std::move(place));
  AnswerTakes(query.answer_bytes);
  query_ = std::make_shared<const EmbeddingsQuery>(std::move(query));
  const ModelKind kind = query_->sparse ? ModelKind::kSparse : ModelKind::kEmbedding;
  const std::string name =
      query_->model.empty() ? OnlyModelOf(service, *context_.caller, kind) : query_->model;
  WholeRequestState::Submit(service, FindModel(service, *context_.caller, name, 0, kModelHeader),
                            BytesOf(query_->sequences));
  query_.reset();
}

absl::Status EmbeddingsRequestState::ReadOptions(const RpcLimits& limits,
                                                 const ServedModel& model) {
  embeddings_.model = model.name;
  prompt_name_ = query_->prompt_name;
  absl::Status kind = query_->sparse ? CheckEmbedsSparsely(model) : CheckEmbeds(model);
  if (!kind.ok()) return kind;
  const bool as_it_is = query_->all_rows || query_->sparse;
  options_.pooling = as_it_is ? Pooling::kNone : PoolingOf(model);
  if (query_->sparse) options_.outputs = {kSparseEmbedding};
  options_.normalize = query_->normalize;
  dimensions_ = query_->dimensions;
  absl::Status status = CheckDimensions(model, dimensions_);
  if (!status.ok()) return status;
  return CheckCount(static_cast<int64_t>(CountOf(query_->sequences)), limits);
}

absl::Status EmbeddingsRequestState::ReadItems(Tokenization& work) {
  absl::Status place = ReserveItems(*work.model, CountOf(query_->sequences));
  if (!place.ok()) return place;
  work.truncation = query_->truncation.Over(work.truncation);
  if (query_->most_tokens > 0) work.reading.most_tokens = query_->most_tokens;
  if (const auto* texts = std::get_if<Texts>(&query_->sequences)) return ReadTexts(*texts, work);
  return ReadIds(std::get<IdSequences>(query_->sequences), work);
}

absl::Status EmbeddingsRequestState::ReadTexts(const Texts& given, Tokenization& work) {
  work.owner = query_;
  work.reading.most_tokens =
      SmallerLimit(work.reading.most_tokens, MostTextTokens(*work.model, work.reading.task));
  for (const std::string& text : given) {
    work.texts.push_back({work.items.size(), text});
    work.items.emplace_back(Item{{}, options_});
  }
  return absl::OkStatus();
}

absl::Status EmbeddingsRequestState::ReadIds(const IdSequences& sequences,
                                             Tokenization& work) const {
  const auto input = TokenInput(*work.model);
  if (!input.ok()) return input.status();
  absl::Status known = CheckIds(*work.model, **input, *query_);
  if (!known.ok()) return known;
  const int64_t longest = MostTokens(work, work.reading, Item(), (*input)->axes[0].letter);
  for (const auto& ids : sequences) {
    Tensor viewed(DType::kI64, {std::ssize(ids)}, ids.data(), query_);
    if (longest > 0 && std::ssize(ids) > longest && work.truncation != Truncation::kNone) {
      const int64_t begin = work.truncation == Truncation::kLeft ? std::ssize(ids) - longest : 0;
      viewed = viewed.Rows(begin, begin + longest);
    }
    work.items.emplace_back(Item{{{(*input)->name, viewed}}, options_});
  }
  return absl::OkStatus();
}

absl::Status EmbeddingsRequestState::Answer(std::vector<ItemResult> results, const Timing& last) {
  for (ItemResult& result : results) {
    embeddings_.tokens += result.tokens;
    embeddings_.vectors.push_back(
        FirstElements(result.outputs.begin()->second, dimensions_, options_.normalize));
  }
  embeddings_.timing = last;
  embeddings_.sending = UntilSent();
  Succeeded(last, results.size());
  done_(std::move(embeddings_));
  return absl::OkStatus();
}

}  // namespace linserve
