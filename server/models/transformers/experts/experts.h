#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/network/layers.h"
#include "models/transformers/experts/expert_options.h"

namespace linserve::transformers {

// Is a feed-forward of which there are several, experts, and of which each row goes through those
// few that a router scores highest: the sum of their results, each times its share of all scores
// (Shazeer et al. 2017, arXiv:1701.06538), and one bias. An expert has no bias, and no gate.
class Experts {
 public:
  // Each is of rows of `width`, and has `inner` columns between its products.
  Experts(int64_t width, int64_t inner, const ExpertOptions& options, Activation activation);

  // Declares the tensors that NomicBert's files have below "mlp".
  void Declare(const Scope& scope);
  double Flops() const;  // a row

  // Returns what is left to be added to each row.
  const at::Tensor& bias() const { return bias_; }
  // Adds the result for rows, which the target may be, but for the bias. REQUIRES: not packed().
  void AddWithoutBias(const at::Tensor& target, const at::Tensor& rows) const;

  // These need packed() weights, and compute block by block, with ScratchElements() of scratch.
  bool packed() const { return router_.packed && !first_.empty(); }
  int64_t ScratchElements() const;
  void Add(const RowBlock& target, const RowBlock& rows, int64_t count, float* scratch) const;

 private:
  // Says that a row of a block goes through an expert, whose result counts so much.
  struct Chosen {
    int64_t row;
    float share;
  };

  void Pack(DType products);
  // Returns for each expert the rows that go through it.
  std::vector<std::vector<Chosen>> Choose(const RowBlock& scores, int64_t count) const;
  at::Tensor Sum(const at::Tensor& rows) const;

  int64_t width_;
  int64_t inner_;
  ExpertOptions options_;
  Activation activation_;
  Linear router_;
  at::Tensor w1_;  // [experts · inner, width], until it is packed
  at::Tensor w2_;  // [experts · inner, width]: transposed
  at::Tensor bias_;
  std::vector<PackedWeight> first_;  // of each expert
  std::vector<PackedWeight> second_;
};

}  // namespace linserve::transformers
