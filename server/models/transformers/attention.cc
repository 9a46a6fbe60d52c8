#include "models/transformers/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/positions/positions.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "models/transformers/global_tokens/attend_with_globals.h"

namespace linserve::transformers {

Attention::Attention(const Options& options, const LayerKind& kind)
    : options_(options),
      kind_(kind),
      query_(options.dim, options.dim, options.attention_bias && options.query_bias),
      key_(options.dim, options.dim, query_.with_bias),
      value_(options.dim, options.dim, query_.with_bias),
      qkv_(options.dim, 3 * options.dim, query_.with_bias),
      out_(options.dim, options.dim, options.attention_bias),
      query_norm_(options.dim, options.eps, options.norm_bias),
      key_norm_(options.dim, options.eps, options.norm_bias),
      relative_(options.relative, options.dim, options.heads),
      blocks_(SizesFor(DType::kF32, kind.window)),
      whole_(SizesFor(DType::kF32, -1)) {
  if (options.family == Family::kLongformer) globals_.emplace(options.dim);
  // Biases are apart, and keys have none.
  if (options.joined_by_head) qkv_.with_bias = false;
}

BlockAttention::Sizes Attention::SizesFor(DType products, int64_t window) const {
  const auto width = static_cast<double>(options_.dim_head() * options_.score_terms);
  return {.heads = options_.heads,
          .dim_head = options_.dim_head(),
          // The pseudo-inverse magnifies what is rounded.
          .products = by_landmarks() ? DType::kF32 : products,
          .before = window,
          .after = window,
          .run = kind_.run,
          .scale = 1 / std::sqrt(width),
          .relative = relative_.defined(),
          .blank = kind_.window >= 0};
}

void Attention::Declare(const Scope& layer, const at::Tensor& positions) {
  const Names& names = NamesOf(options_.family);
  DeclareProjections(layer);
  if (relative_.defined()) {
    relative_.Declare(layer / names.position_key, layer / names.position_query);
  }
  layer.AfterLoading([this, &positions](DType products) { Prepare(products, positions); });
  if (options_.landmarks.kernel > 0) {
    (layer / names.convolution)
        .Declare("weight", convolution_, {options_.heads, 1, options_.landmarks.kernel, 1},
                 Init::kUniform);
  }
  if (globals_) globals_->Declare(layer / "attention" / "self");
  out_.Declare(layer / names.out);
}

void Attention::DeclareProjections(const Scope& layer) {
  const Names& names = NamesOf(options_.family);
  if (names.joined != nullptr) {
    qkv_.DeclarePart(layer / names.joined);
  } else {
    query_.DeclarePart(layer / names.query);
    key_.DeclarePart(layer / names.key);
    value_.DeclarePart(layer / names.value);
  }
  if (norms_keys()) {
    query_norm_.Declare(layer / names.query_norm);
    key_norm_.Declare(layer / names.key_norm);
  }
  if (options_.joined_by_head) {
    const Scope self = layer / "attention" / "self";
    self.Declare("q_bias", query_bias_, {options_.dim}, Init::kZeros);
    self.Declare("v_bias", value_bias_, {options_.dim}, Init::kZeros);
  }
}

void Attention::Join() {
  if (options_.joined_by_head) {
    qkv_.weight = qkv_.weight.view({options_.heads, 3, options_.dim_head(), options_.dim})
                      .transpose(0, 1)
                      .reshape({3 * options_.dim, options_.dim});
    qkv_.bias = at::cat({query_bias_, at::zeros_like(query_bias_), value_bias_});
    qkv_.with_bias = true;
  }
  if (!qkv_.weight.defined()) JoinParts(qkv_, {&query_, &key_, &value_});
}

void Attention::Prepare(DType products, const at::Tensor& positions) {
  blocks_ = BlockAttention(SizesFor(products, kind_.window));
  whole_ = BlockAttention(SizesFor(products, -1));
  relative_.Prepare(positions, query_, key_, blocks_.rounded());
  Join();
  if (kind_.theta > 0 && !options_.turns_neighbours) {
    const auto turned = [this](const at::Tensor& joined) {
      const std::vector<at::Tensor> parts = joined.chunk(3);
      return at::cat(
          {ByPairs(parts[0], options_.heads), ByPairs(parts[1], options_.heads), parts[2]});
    };
    qkv_.weight = turned(qkv_.weight);
    if (qkv_.with_bias) qkv_.bias = turned(qkv_.bias);
  }
  qkv_.Pack(products);
  if (convolution_.defined() && qkv_.packed) block_convolution_ = BlockConvolution(convolution_);
}

double Attention::Flops(int64_t length) const {
  const auto rows = static_cast<double>(length);
  const auto dim = static_cast<double>(options_.dim);
  const auto linear = static_cast<double>(qkv_.Flops() + out_.Flops()) +
                      2 * static_cast<double>(options_.landmarks.kernel) * dim +
                      (options_.globals.first ? 4 * dim * dim : 0);
  if (by_landmarks()) {
    constexpr double kProducts = 24;  // of the pseudo-inverse
    const auto landmarks = static_cast<double>(options_.landmarks.count);
    return rows * (linear + 8 * landmarks * dim) +
           2 * landmarks * landmarks *
               (2 * dim + kProducts * landmarks * static_cast<double>(options_.heads));
  }
  // The rows of both blocks of global tokens see all.
  const int64_t besides = 4 * options_.globals.block;
  const bool whole = kind_.window < 0 || length <= options_.globals.whole;
  const auto seen = static_cast<double>(
      whole ? length : std::min(length, 2 * kind_.window + kind_.run + besides));
  return rows * (linear + 4 * seen * dim + relative_.Flops(length));
}

void Attention::Project(const RowBlock& rows, int64_t count, const RowBlock& qkv,
                        const Context& context) const {
  qkv_.Set(qkv, rows, count);
  if (ProjectsGlobals(context)) {
    globals_->SetKeysAndValues(qkv.Columns(3 * options_.dim), rows, count);
  }
  if (!norms_keys()) return;
  const RowBlock keys = qkv.Columns(options_.dim);
  query_norm_.Set(qkv, qkv, count);
  key_norm_.Set(keys, keys, count);
}

at::Tensor Attention::GlobalQueries(const at::Tensor& rows, const Context& context) const {
  return ProjectsGlobals(context) ? globals_->Queries(rows, *context.globals) : at::Tensor();
}

SelfAttentionByBlocks::Attend Attention::AttendIn(size_t sequence, const at::Tensor& qkv,
                                                  const BlockAttention::Keys& keys,
                                                  const BlockAttention::Scores& scores,
                                                  const at::Tensor& queries,
                                                  const Context& context) const {
  return AttendWithGlobals(SequenceWithGlobals{.windows = blocks_,
                                               .whole = whole_,
                                               .tokens = *context.globals,
                                               .sequence = sequence,
                                               .start = context.layout.starts[sequence],
                                               .qkv = qkv,
                                               .dim = options_.dim,
                                               .keys = keys,
                                               .scores = scores,
                                               .queries = queries});
}

void Attention::AddConvolved(const RowBlock& qkv, int64_t length, int64_t place, int64_t count,
                             const RowBlock& attended) const {
  if (!convolution_.defined()) return;
  block_convolution_.Add(qkv.Columns(2 * options_.dim), length, place, count, options_.dim_head(),
                         attended);
}

void Attention::Rotate(const RowBlock& qkv, int64_t place, int64_t count,
                       const Context& context) const {
  if (kind_.theta == 0) return;
  RotateRows(qkv, count, turned_heads(), options_.dim_head(),
             BlockOf(context.rotations.at(kind_.theta), place));
}

BlockAttention::Scores Attention::ScoresOf(int64_t start, const Context& context) const {
  BlockAttention::Scores scores;
  if (context.key_scores.defined()) {
    scores.of_keys = context.key_scores.const_data_ptr<float>() + start;
  }
  if (context.distances.defined()) {
    scores.distances = context.distances.size(1);
    scores.of_distances = context.distances.const_data_ptr<float>() + scores.distances / 2;
  }
  if (options_.hides_queries) scores.of_queries = scores.of_keys;
  if (relative_.defined()) {
    scores.relative = &relative_.blocks();
    scores.places = {context.places.const_data_ptr<int32_t>() + context.places.size(0) / 2,
                     options_.relative.straight()};
  }
  return scores;
}

}  // namespace linserve::transformers
