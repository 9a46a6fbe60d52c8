#include "rest/embeddings_request.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <numeric>
#include <utility>
#include <variant>

#include "core/status/quote.h"
#include "rest/http_errors.h"
#include "rest/tensor_json.h"
#include "serving/admission.h"
#include "serving/whole_request.h"

namespace linserve {
namespace {

absl::StatusOr<std::string> TokenInput(const ServedModel& model) {
  const std::string* name = nullptr;
  for (const InputSpec& input : model.engine->info().signature.inputs) {
    if (input.optional) continue;
    if (name != nullptr || input.kind != InputKind::kToken) {
      return absl::InvalidArgumentError("model " + Quoted(model.name) +
                                        " does not take one sequence of token ids; use "
                                        "/v2/models/" +
                                        model.name + "/infer");
    }
    name = &input.name;
  }
  return *name;
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

// Checks the ids here, too, since the engine would name the model's input, for which this API has
// no word, and not the cause.
absl::Status CheckIds(const ServedModel& model, const std::string& input,
                      const EmbeddingsQuery& query) {
  const int64_t vocabulary = model.engine->info().signature.FindInput(input)->vocabulary;
  for (const auto& ids : std::get<IdSequences>(query.sequences)) {
    for (const int64_t id : ids) {
      if (id >= 0 && id < vocabulary) continue;
      return OfParameter(
          absl::InvalidArgumentError(
              "the token id " + std::to_string(id) + " is not one of model " + Quoted(model.name) +
              ", which has 0 to " + std::to_string(vocabulary - 1) +
              ": perhaps another tokenizer made it" + query.cause_of_foreign_ids),
          "input");
    }
  }
  return absl::OkStatus();
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

// Returns the first of a vector's dimensions.
Tensor Shortened(const Tensor& vector, int64_t dimensions, bool normalize) {
  if (dimensions == 0 || dimensions == vector.elements()) return vector;
  std::vector<float> first(vector.data<float>(), vector.data<float>() + dimensions);
  const float norm = std::sqrt(std::inner_product(first.begin(), first.end(), first.begin(), 0.0F));
  if (normalize && norm > 0) {
    for (float& value : first) value /= norm;
  }
  return Tensor::FromFloats({dimensions}, first);
}

class EmbeddingsRequestState : public WholeRequestState {
 public:
  using WholeRequestState::WholeRequestState;

  void Submit(ServiceContext& service, EmbeddingsQuery query) {
    constexpr int64_t kBase64 = 2;  // four characters for three bytes
    AnswerTakes(query.base64 ? kBase64 : kLongestElement / int64_t{sizeof(float)});
    query_ = std::make_shared<const EmbeddingsQuery>(std::move(query));
    WholeRequestState::Submit(service, FindModel(service, *context_.caller, query_->model, 0),
                              BytesOf(query_->sequences));
    query_.reset();
  }

  absl::StatusOr<Embeddings> Wait() { return answer_.get_future().get(); }

 private:
  absl::Status ReadOptions(const RpcLimits& limits, const ServedModel& model) override {
    embeddings_.model = model.name;
    const Pooling preferred = model.default_pooling;
    options_.pooling = preferred == Pooling::kNone ? Pooling::kMean : preferred;
    options_.normalize = query_->normalize;
    dimensions_ = query_->dimensions;
    absl::Status fits = CheckDimensions(model, dimensions_);
    if (!fits.ok()) return fits;
    return CheckCount(static_cast<int64_t>(CountOf(query_->sequences)), limits);
  }

  absl::Status ReadItems(Tokenization& work) override {
    absl::Status place = ReserveItems(*work.model, CountOf(query_->sequences));
    if (!place.ok()) return place;
    work.owner = query_;
    work.truncation = query_->truncation;
    if (const auto* texts = std::get_if<Texts>(&query_->sequences)) {
      for (const std::string& text : *texts) {
        work.texts.push_back({work.items.size(), text});
        work.items.emplace_back(Item{{}, options_});
      }
      return absl::OkStatus();
    }
    const auto input = TokenInput(*work.model);
    if (!input.ok()) return input.status();
    absl::Status known = CheckIds(*work.model, *input, *query_);
    if (!known.ok()) return known;
    for (const auto& ids : std::get<IdSequences>(query_->sequences)) {
      const Tensor viewed(DType::kI64, {std::ssize(ids)}, ids.data(), query_);
      work.items.emplace_back(Item{{{*input, viewed}}, options_});
    }
    return absl::OkStatus();
  }

  absl::Status Answer(std::vector<ItemResult> results, const Timing& last) override {
    for (ItemResult& result : results) {
      embeddings_.tokens += result.tokens;
      embeddings_.vectors.push_back(
          Shortened(result.outputs.begin()->second, dimensions_, options_.normalize));
    }
    embeddings_.sending = UntilSent();
    Succeeded(last, results.size());
    answer_.set_value(std::move(embeddings_));
    return absl::OkStatus();
  }

  void AnswerRefusal(const absl::Status& status) override { answer_.set_value(status); }

  // Keeps the texts alive, which are viewed until they are token ids, and the ids, which are viewed
  // until they are computed.
  std::shared_ptr<const EmbeddingsQuery> query_;
  OutputOptions options_;
  int64_t dimensions_ = 0;
  Embeddings embeddings_;
  std::promise<absl::StatusOr<Embeddings>> answer_;
};

}  // namespace

absl::StatusOr<Embeddings> Embed(const RestCall& call, const std::string& rpc,
                                 absl::StatusOr<EmbeddingsQuery> query) {
  const auto state =
      std::make_shared<EmbeddingsRequestState>(SideOf(call, rpc), ContextOf(call, ""));
  if (query.ok()) {
    state->Submit(call.service, *std::move(query));
  } else {
    state->Refuse(query.status());
  }
  return state->Wait();
}

}  // namespace linserve
