#include "models/static/static_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/rows/aten.h"
#include "models/config/config_error.h"
#include "models/sentences/pooled_sequences.h"
#include "models/static/row_sums.h"

namespace linserve::static_models {
namespace {

constexpr const char* kVector = "sentence_embedding";
constexpr const char* kRows = "token_embeddings";

struct TableOptions {
  const char* name = "";  // of its tensor
  int64_t tokens = 0;
  int64_t width = 0;
  std::optional<int64_t> rows{};  // that tokens share; nullopt: each has its own
  bool weighted = false;          // a token's row is multiplied by a number of its own
};

class StaticNetwork : public Network {
 public:
  explicit StaticNetwork(const TableOptions& options) : options_(options) {}

  void Declare(const Scope& scope) override;
  Signature signature() const override;
  double Flops(int64_t length) const override {
    return 2.0 * static_cast<double>(length * options_.width);
  }
  NetworkNotes Notes() const override;
  bool Recordable() const override { return true; }
  bool LeavesOutFullMask(const std::string& /*input*/) const override { return true; }
  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class StaticPass;

  void NumberRows();
  bool on_host() const { return table_.is_cpu(); }
  // Returns the rows of tokens.
  at::Tensor RowsOf(const at::Tensor& ids) const;
  // Returns the mean rows of all sequences, on the host.
  at::Tensor Means(const at::Tensor& ids, const at::Tensor& mask, const PlacedLayout& layout) const;

  TableOptions options_;
  at::Tensor table_;    // [rows, width]
  at::Tensor mapping_;  // [tokens]: the row of each; undefined: they are numbered alike
  at::Tensor weights_;  // [tokens]; undefined: all are 1
};

void StaticNetwork::Declare(const Scope& scope) {
  const int64_t rows = options_.rows.value_or(options_.tokens);
  scope.Declare(options_.name, table_, {rows, options_.width}, Init::kNormal);
  scope.Rounds(table_);
  if (options_.weighted) scope.Declare("weights", weights_, {options_.tokens}, Init::kOnes);
  if (!options_.rows) return;
  scope.Declare("mapping", mapping_, {options_.tokens}, Init::kZeros, ParameterKind::kDrawn);
  scope.AfterLoading([this](DType) { NumberRows(); });
}

// Each token's row must be one of the table's, whatever the file says.
void StaticNetwork::NumberRows() {
  const at::Tensor numbers = mapping_.to(at::kLong);
  const at::Tensor fits = numbers.eq(mapping_) & numbers.ge(0) & numbers.lt(*options_.rows);
  if (!fits.all().item<bool>()) {
    throw ConfigError("the tensor mapping holds what is the number of none of the " +
                      std::to_string(*options_.rows) + " rows");
  }
  mapping_ = numbers;
}

Signature StaticNetwork::signature() const {
  Signature signature = SignatureOfEncoder(options_.tokens, options_.width);
  OutputSpec& rows = signature.outputs[0];
  rows.name = kRows;
  signature.outputs.insert(signature.outputs.begin(), {.name = kVector,
                                                       .axes = {Axis::Fixed(options_.width)},
                                                       .mask = rows.mask,
                                                       .of_nothing = true});
  return signature;
}

NetworkNotes StaticNetwork::Notes() const {
  NetworkNotes notes;
  std::string vectors = "means of rows, one a token";
  if (options_.rows) vectors += ", which share " + std::to_string(*options_.rows);
  if (options_.weighted) vectors += ", each with a weight";
  notes.facts.emplace_back("vectors", vectors);
  return notes;
}

class StaticNetwork::StaticPass : public Pass {
 public:
  StaticPass(const StaticNetwork& network, const TensorBatch& batch)
      : network_(network),
        ids_(batch["x"]),
        mask_(batch.Find("attention_mask")),
        layout_(batch.axes.at('n')) {}

  bool Step() override { return false; }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    if (name == kRows) return network_.RowsOf(ids_.narrow(0, begin, end - begin));
    if (network_.on_host()) {
      if (!means_.defined()) means_ = network_.Means(ids_, mask_, layout_);
      return means_.narrow(0, begin, end - begin);
    }
    const auto rows = [this](int64_t first, int64_t last) {
      return network_.RowsOf(ids_.narrow(0, first, last - first));
    };
    return PoolSequences(rows, layout_, mask_, begin, end, Pooling::kMean);
  }

 private:
  const StaticNetwork& network_;
  at::Tensor ids_;
  at::Tensor mask_;
  PlacedLayout layout_;
  at::Tensor means_;  // of all sequences
};

std::unique_ptr<Pass> StaticNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<StaticPass>(*this, batch);
}

at::Tensor StaticNetwork::RowsOf(const at::Tensor& ids) const {
  const at::Tensor places = mapping_.defined() ? mapping_.index_select(0, ids) : ids;
  const at::Tensor rows = at::embedding(table_, places);
  if (!weights_.defined()) return on_host() ? rows.to(at::kFloat) : rows;
  const at::Tensor weighted = rows * weights_.index_select(0, ids).unsqueeze(1);
  return on_host() ? weighted.to(at::kFloat) : weighted;
}

at::Tensor StaticNetwork::Means(const at::Tensor& ids, const at::Tensor& mask,
                                const PlacedLayout& layout) const {
  const at::Tensor tokens = ids.contiguous();
  const at::Tensor there = mask.defined() ? mask.contiguous() : mask;
  const TokenRows rows(table_, mapping_, weights_);
  const int64_t sequences = layout.sequences();
  at::Tensor means = at::empty({sequences, options_.width}, at::kFloat);
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t start = layout.starts[static_cast<size_t>(i)];
    rows.Mean(tokens.const_data_ptr<int64_t>() + start,
              there.defined() ? there.const_data_ptr<bool>() + start : nullptr,
              layout.lengths[static_cast<size_t>(i)], means.select(0, i).mutable_data_ptr<float>());
  }
  return means;
}

}  // namespace

std::unique_ptr<Network> MakeStaticEmbedding(Params& params) {
  TableOptions options{.name = "embedding.weight"};
  options.tokens = params.Positive("num_embeddings");
  options.width = params.Positive("embedding_dim");
  return std::make_unique<StaticNetwork>(options);
}

std::unique_ptr<Network> MakeStaticModel(Params& params) {
  TableOptions options{.name = "embeddings"};
  options.tokens = params.Positive("vocab_size");
  options.width = params.Positive("hidden_dim");
  options.rows = params.OptionalPositive("vocabulary_quantization");
  options.weighted = params.Flag("weighted", false);
  return std::make_unique<StaticNetwork>(options);
}

}  // namespace linserve::static_models
