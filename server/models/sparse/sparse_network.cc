#include "models/sparse/sparse_network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "engine/model.h"

namespace linserve {
namespace {

// The weights of so many words, a block of rows and their logits fit a core's second cache.
constexpr int64_t kWords = 512;
// Rows of logits lie an odd number of cache lines apart, so that they do not meet in the same
// places of a cache.
constexpr int64_t kLogitsStride = kWords + 16;
// So many rows are folded at once: on the CPU few enough to look up in between, on a device as many
// as keep it busy.
constexpr int64_t kRowsAtOnce = 2 * kBlockRows;
constexpr int64_t kRowsOnDevice = 512;

}  // namespace

// Folds the rows of all sequences once the encoder is done with them: rows of several short
// sequences are multiplied together.
class SparseNetwork::SparsePass : public Pass {
 public:
  SparsePass(const SparseNetwork& network, TensorBatch batch) : network_(network) {
    layout_ = batch.axes.at(network.input_.axes[0].letter);
    mask_ = batch.Find(network.input_.mask);
    encoder_ = network.encoder_->Begin(std::move(batch));
  }

  bool Step() override {
    if (!encoded_) {
      encoded_ = !encoder_->Step();
      return true;
    }
    FoldShare();
    if (++folds_ < network_.FoldSteps()) return true;
    network_.fold_.Finish(weights_);
    return false;
  }

  at::Tensor Output(const std::string& name, int64_t begin, int64_t end) override {
    if (name != kSparseEmbedding) return encoder_->Output(name, begin, end);
    return weights_.narrow(0, begin, end - begin);
  }

 private:
  // Folds what one step has of the rows.
  void FoldShare() {
    const at::Tensor any = Rows(0, 1);
    if (!weights_.defined()) {
      weights_ = at::zeros({layout_.sequences(), network_.head_.vocabulary},
                           any.options().dtype(at::kFloat));
    }
    const int64_t rows =
        std::accumulate(layout_.lengths.begin(), layout_.lengths.end(), int64_t{0});
    const int64_t steps = network_.FoldSteps();
    const int64_t most = any.is_cpu() ? kRowsAtOnce : kRowsOnDevice;
    for (int64_t left = (rows + steps - 1) / steps;
         left > 0 && sequence_ < layout_.lengths.size();) {
      const int64_t length = layout_.lengths[sequence_];
      const int64_t count = std::min({length - row_, most - gathered_, left});
      Gather(static_cast<int64_t>(sequence_), layout_.starts[sequence_] + row_, count);
      left -= count;
      row_ += count;
      if (row_ == length) {
        ++sequence_;
        row_ = 0;
      }
      if (gathered_ == most) FoldGathered();
    }
    FoldGathered();
  }

  at::Tensor Rows(int64_t begin, int64_t end) {
    return encoder_->Output(network_.input_.name, begin, end);
  }

  // Adds rows of a sequence to those that are folded next, but for what the mask hides.
  void Gather(int64_t sequence, int64_t begin, int64_t count) {
    gathered_ += count;
    at::Tensor rows = Rows(begin, begin + count);
    if (mask_.defined()) {
      const at::Tensor there = mask_.narrow(0, begin, count);
      rows = rows.index({there});
      count = rows.size(0);
      if (count == 0) return;
    }
    rows_.push_back(rows);
    spans_.push_back({sequence, count});
  }

  void FoldGathered() {
    if (!rows_.empty()) {
      network_.Fold(rows_.size() == 1 ? rows_[0] : at::cat(rows_), spans_, weights_);
    }
    rows_.clear();
    spans_.clear();
    gathered_ = 0;
  }

  const SparseNetwork& network_;
  PlacedLayout layout_;
  at::Tensor mask_;
  std::unique_ptr<Pass> encoder_;
  bool encoded_ = false;
  int64_t folds_ = 0;    // steps that have folded
  size_t sequence_ = 0;  // whose row `row_` is next
  int64_t row_ = 0;
  at::Tensor weights_;  // [sequences, vocabulary]
  std::vector<at::Tensor> rows_;
  std::vector<Span> spans_;
  int64_t gathered_ = 0;  // rows, those that are hidden, too
};

SparseNetwork::SparseNetwork(std::unique_ptr<Network> encoder, SparseHead head)
    : encoder_(std::move(encoder)),
      head_(std::move(head)),
      input_(encoder_->signature().outputs[0]),
      fold_{.sum = head_.sum, .twice = head_.twice},
      transform_(input_.axes.back().size, head_.transform.outputs, head_.transform.biased),
      norm_(head_.transform.outputs, head_.transform.norm->eps, head_.transform.norm->biased) {}

void SparseNetwork::Declare(const Scope& scope) {
  const Scope encoder = scope / head_.encoder;
  encoder.IsBody();
  encoder_->Declare(encoder);
  transform_.Declare(scope / head_.transform.path);
  const Scope norm = scope / head_.transform.norm->path;
  norm_.Declare(norm);
  // So it is called in checkpoints that came from TensorFlow.
  norm.Declare("gamma", norm_.weight, {norm_.width}, Init::kOnes);
  if (norm_.with_bias) norm.Declare("beta", norm_.bias, {norm_.width}, Init::kZeros);
  const Scope decoder = scope / head_.decoder;
  const std::vector<int64_t> shape = {head_.vocabulary, norm_.width};
  weight_ = head_.tied ? &encoder.Slot(head_.words + ".weight") : &own_weight_;
  decoder.Declare("weight", *weight_, shape, Init::kNormal);
  if (!head_.tied) decoder.Packs(own_weight_);
  if (head_.biased) decoder.Declare("bias", bias_, {head_.vocabulary}, Init::kZeros);
  if (!head_.other_bias.empty() && head_.tied) {
    scope.Declare(head_.other_bias, bias_, {head_.vocabulary}, Init::kZeros);
  } else if (!head_.other_bias.empty()) {
    scope.Ignore(head_.other_bias);
  }
  scope.AfterLoading([this](DType products) { Pack(products); });
}

int64_t SparseNetwork::FoldSteps() const {
  constexpr int64_t kFewest = 8;
  return std::max(kFewest, encoder_->Layers());
}

void SparseNetwork::Pack(DType products) {
  if (!weight_->is_cpu()) return;
  std::vector<PackedWeight> packed;
  for (int64_t word = 0; word < head_.vocabulary; word += kWords) {
    const int64_t words = std::min(kWords, head_.vocabulary - word);
    // A tied head's weights are the table of tokens, which may be rounded.
    packed.emplace_back(weight_->narrow(0, word, words).to(at::kFloat), products);
    if (!packed.back()) return;
  }
  packed_ = std::move(packed);
  own_weight_.reset();
  if (bias_.defined()) bias_ = bias_.contiguous();
}

Signature SparseNetwork::signature() const {
  Signature signature = encoder_->signature();
  signature.outputs.insert(
      signature.outputs.begin(),
      {.name = kSparseEmbedding, .axes = {Axis::Fixed(head_.vocabulary)}, .mask = input_.mask});
  return signature;
}

double SparseNetwork::Flops(int64_t length) const {
  const double decoder = 2.0 * static_cast<double>(norm_.width * head_.vocabulary);
  return encoder_->Flops(length) +
         static_cast<double>(length) * (static_cast<double>(transform_.Flops()) + decoder);
}

NetworkNotes SparseNetwork::Notes() const {
  NetworkNotes notes = encoder_->Notes();
  notes.facts.emplace_back("sparse embeddings", std::string(head_.sum ? "sum" : "max") + " of " +
                                                    (head_.twice ? "log1p(log1p(relu(logits)))"
                                                                 : "log1p(relu(logits))"));
  return notes;
}

std::unique_ptr<Pass> SparseNetwork::Begin(TensorBatch batch) const {
  return std::make_unique<SparsePass>(*this, std::move(batch));
}

void SparseNetwork::Fold(const at::Tensor& rows, const std::vector<Span>& spans,
                         at::Tensor& weights) const {
  if (!packed_.empty()) return FoldPacked(rows, spans, weights);
  const at::Tensor logits = at::linear(Transform(rows), *weight_, bias_).to(at::kFloat);
  int64_t first = 0;
  for (const Span& span : spans) {
    fold_.Add(logits.narrow(0, first, span.count), weights.select(0, span.sequence));
    first += span.count;
  }
}

at::Tensor SparseNetwork::Transform(const at::Tensor& rows) const {
  at::Tensor transformed = transform_(rows);
  Activate(head_.transform.activation, transformed);
  return norm_(transformed);
}

// Each thread has words of its own, so that none waits for another's weights.
void SparseNetwork::FoldPacked(const at::Tensor& rows, const std::vector<Span>& spans,
                               at::Tensor& weights) const {
  const at::Tensor transformed = Transform(rows);
  const auto fold = [&](int64_t panel, float* scratch) {
    const int64_t word = panel * kWords;
    const int64_t words = std::min(kWords, head_.vocabulary - word);
    const float* bias = bias_.defined() ? bias_.const_data_ptr<float>() + word : nullptr;
    const RowBlock logits{scratch, kLogitsStride};
    int64_t first = 0;  // row of the block that is in the scratch
    int64_t row = 0;
    for (const Span& span : spans) {
      for (int64_t end = row + span.count; row < end;) {
        if (row == first) {
          const int64_t block = std::min(kBlockRows, transformed.size(0) - first);
          packed_[static_cast<size_t>(panel)].Multiply(BlockOf(transformed, first), block, logits,
                                                       /*add=*/false, bias);
        }
        const int64_t count = std::min(end, first + kBlockRows) - row;
        float* weight = BlockOf(weights, span.sequence).Columns(word).data;
        fold_.Add(logits.Rows(row - first), count, words, weight);
        row += count;
        if (row == first + kBlockRows) first = row;
      }
    }
  };
  ForSideBySide(0, std::ssize(packed_), kBlockRows * kLogitsStride, fold);
}

}  // namespace linserve
