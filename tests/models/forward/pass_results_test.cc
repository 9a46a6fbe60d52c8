// What sequences of a batch asked for is made of its rows, and of no more of them than they need.
#include "models/forward/pass_results.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linserve {
namespace {

// Gives rows of which each holds its own number, and counts those that are asked for.
class CountingPass : public Pass {
 public:
  bool Step() override { return false; }

  at::Tensor Output(const std::string& /*name*/, int64_t begin, int64_t end) override {
    asked_ += end - begin;
    return at::arange(begin, end, at::kFloat).unsqueeze(1).expand({end - begin, 3}).clone();
  }

  int64_t asked() const { return asked_; }

 private:
  int64_t asked_ = 0;
};

TEST(PassResults, OfAlternatingOptionsAskForTheRowsOfABatchOnce) {
  const c10::InferenceMode no_autograd;
  constexpr int64_t kSequences = 40;
  Signature signature;
  const Axis length = Axis::Ragged('n');
  signature.inputs = {{.name = "x", .kind = InputKind::kToken, .axes = {length}, .vocabulary = 9}};
  signature.outputs = {{.name = "y", .axes = {length, Axis::Fixed(3)}}};
  PlacedLayout layout;
  std::vector<Wanted> wanted(kSequences);
  for (int64_t i = 0; i < kSequences; ++i) {
    layout.starts.push_back(layout.rows);
    layout.lengths.push_back(i % 4 + 1);
    layout.rows += layout.lengths.back();
    wanted[static_cast<size_t>(i)].options.dtype = i % 3 == 0 ? DType::kF64 : DType::kF32;
  }
  CountingPass pass;
  const auto results =
      ResultsOf(pass, signature, Placement(at::kCPU), {{'n', layout}}, wanted, [] {});
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& rows = results[i].at("y");
    ASSERT_EQ(rows.shape(), (Shape{layout.lengths[i], 3}));
    const Tensor floats = *Convert(rows, DType::kF32);
    EXPECT_EQ(floats.data<float>()[0], static_cast<float>(layout.starts[i])) << i;
  }
  // Each group asks for its first row besides, to see what a row takes.
  EXPECT_LE(pass.asked(), layout.rows + kSequences);
}

// Whoever does not read his results holds them, and there is room for no more than them.
TEST(PassResults, OfASequenceHoldNoMemoryOfTheOthers) {
  const c10::InferenceMode no_autograd;
  Signature signature;
  const Axis length = Axis::Ragged('n');
  signature.inputs = {{.name = "x", .kind = InputKind::kToken, .axes = {length}, .vocabulary = 9}};
  signature.outputs = {{.name = "y", .axes = {length, Axis::Fixed(3)}}};
  PlacedLayout layout;
  layout.rows = 1001;
  layout.starts = {0, 1};
  layout.lengths = {1, 1000};
  for (const Pooling pooling : {Pooling::kNone, Pooling::kMean}) {
    std::vector<Wanted> wanted(2);
    for (Wanted& one : wanted) one.options.pooling = pooling;
    CountingPass pass;
    const auto results =
        ResultsOf(pass, signature, Placement(at::kCPU), {{'n', layout}}, wanted, [] {});
    const auto held = std::static_pointer_cast<const at::Tensor>(results[0].at("y").owner());
    EXPECT_LE(held->storage().nbytes(), 2 * results[0].at("y").byte_size());
    EXPECT_EQ(results[0].at("y").data<float>()[0], 0);
    EXPECT_EQ(results[1].at("y").data<float>()[0], pooling == Pooling::kNone ? 1 : 500.5F);
  }
}

}  // namespace
}  // namespace linserve
