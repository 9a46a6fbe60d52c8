#include "rest/embeddings_request.h"

#include <future>
#include <utility>
#include <variant>

#include "core/status/quote.h"
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
    return CheckCount(static_cast<int64_t>(CountOf(query_->sequences)), limits);
  }

  absl::Status ReadItems(Tokenization& work) override {
    absl::Status place = ReserveItems(*work.model, CountOf(query_->sequences));
    if (!place.ok()) return place;
    work.owner = query_;
    work.truncation = query_->truncation.value_or(work.truncation);
    if (const auto* texts = std::get_if<Texts>(&query_->sequences)) {
      for (const std::string& text : *texts) {
        work.texts.push_back({work.items.size(), text});
        work.items.emplace_back(Item{{}, options_});
      }
      return absl::OkStatus();
    }
    const auto input = TokenInput(*work.model);
    if (!input.ok()) return input.status();
    for (const auto& ids : std::get<IdSequences>(query_->sequences)) {
      const Tensor viewed(DType::kI64, {std::ssize(ids)}, ids.data(), query_);
      work.items.emplace_back(Item{{{*input, viewed}}, options_});
    }
    return absl::OkStatus();
  }

  absl::Status Answer(std::vector<ItemResult> results, const Timing& last) override {
    for (ItemResult& result : results) {
      embeddings_.tokens += result.tokens;
      embeddings_.vectors.push_back(std::move(result.outputs.begin()->second));
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
