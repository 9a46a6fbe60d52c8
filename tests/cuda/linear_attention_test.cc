#include "cuda/kernels/linear_attention.h"

#include <limits>
#include <memory>

#include "attention/linear/causal_linear_attention.h"
#include "attention/linear/kernel_attention.h"
#include "attention/linear/linear_attention.h"
#include "attention/rows/spans.h"
#include "cuda/kernel_fixture.h"
#include "cuda/kernels/linear_attention_calls.h"

namespace linserve::cuda {
namespace {

// Runs the kernels on the CPU.
struct OnTheCpu {
  template <typename Kernel, typename T>
  void Start(const LinearAttentionArguments<T>& arguments, const BlockIndex& grid) const {
    RunGrid<T>(grid, Kernel::kSharedBytes, [&](const BlockIndex& at, T* shared) {
      const auto floats = std::make_unique<float[]>(Kernel::kFloats);
      std::fill_n(floats.get(), Kernel::kFloats, NAN);
      Kernel::Run(arguments, at, SharedMemory<T>{shared, floats.get()});
    });
  }

  template <int D, typename T>
  void AddParts(const LinearAttentionArguments<T>& arguments, int64_t elements) const {
    for (int64_t i = 0; i < elements; ++i) cuda::AddParts<D>(arguments, i);
  }
};

struct LinearCase {
  int64_t heads = 2;
  int64_t dim_head = 32;
  bool elu = false;
  bool causal = true;
  int64_t bucket = 1;
  bool divided = true;
  bool masked = false;
  double scale = 1;  // of queries and keys
  int64_t multiprocessors = 1;
  double most = 0;   // of the distance; 0: as usual
  bool nan = false;  // in the last key
};

// LibTorch's operators in F64, of one sequence: [heads, rows, dim_head].
at::Tensor Reference(const LinearCase& sizes, const at::Tensor& queries, const at::Tensor& keys,
                     const at::Tensor& values, const at::Tensor& mask) {
  if (sizes.elu) {
    const Visible visible{.mask = mask, .causal = sizes.causal};
    return KernelAttention(queries, keys, values, visible, sizes.divided);
  }
  const at::Tensor out = at::empty(queries.sizes(), queries.options());
  if (sizes.causal) {
    CausalState state;
    linserve::CausalLinearAttention(queries, keys, values, mask, sizes.bucket, state, out);
  } else {
    LinearAttention(queries, keys, values, mask, out);
  }
  return out;
}

template <typename T>
class LinearAttentionKernel : public testing::Test {
 protected:
  void ExpectLikeTheReference(const LinearCase& sizes, const PlacedLayout& layout,
                              const PlacedLayout& key_layout) {
    const int64_t width = sizes.heads * sizes.dim_head;
    const auto random = [&](int64_t rows, double scale) {
      return Random({rows, width}, at::kFloat).mul_(scale).to(kTypeOf<T>);
    };
    const at::Tensor queries = random(layout.rows, sizes.scale);
    const at::Tensor keys = random(key_layout.rows, sizes.scale);
    const at::Tensor values = random(key_layout.rows, 1);
    if (sizes.nan) keys[-1].fill_(NAN);
    const at::Tensor mask = sizes.masked ? at::rand({key_layout.rows}).gt(0.3) : at::Tensor();
    std::optional<double> floor;
    if (sizes.elu && sizes.divided) floor = std::numeric_limits<float>::min();
    if (!sizes.elu && sizes.causal) floor = 1e-3;
    const LayoutTable table = TableOf(layout);
    const LayoutTable key_table = TableOf(key_layout);
    const at::Tensor out = at::full({layout.rows, width}, 7, queries.options());
    ASSERT_TRUE(CallLinearAttention({.queries = queries,
                                     .keys = keys,
                                     .values = values,
                                     .mask = mask,
                                     .heads = sizes.heads,
                                     .layout = table,
                                     .key_layout = key_table,
                                     .elu = sizes.elu,
                                     .causal = sizes.causal,
                                     .bucket = sizes.bucket,
                                     .floor = floor},
                                    out, sizes.multiprocessors, OnTheCpu()));
    for (int64_t i = 0; i < layout.sequences(); ++i) {
      const auto part = [&](const at::Tensor& rows, const PlacedLayout& of) {
        const auto sequence = static_cast<size_t>(i);
        return rows.narrow(0, of.starts[sequence], of.lengths[sequence]);
      };
      const auto heads = [&](const at::Tensor& rows, const PlacedLayout& of) {
        return part(rows, of).to(at::kDouble).unflatten(1, {sizes.heads, -1}).transpose(0, 1);
      };
      const at::Tensor of_keys = sizes.masked ? part(mask, key_layout).unsqueeze(0) : at::Tensor();
      const at::Tensor expected = Reference(sizes, heads(queries, layout), heads(keys, key_layout),
                                            heads(values, key_layout), of_keys);
      const at::Tensor result = heads(out, layout);
      if (sizes.nan) {
        EXPECT_TRUE(result.isnan().all().template item<bool>());
        continue;
      }
      ASSERT_TRUE(result.isfinite().all().template item<bool>()) << "sequence " << i;
      if (expected.abs().max().template item<double>() == 0) {
        EXPECT_EQ(result.abs().max().template item<double>(), 0);
        continue;
      }
      const double most = kTypeOf<T> == at::kBFloat16 ? 1e-2 : 2e-3;
      EXPECT_LT(Distance(result, expected), most) << "sequence " << i;
    }
    // The rows of padding, which belong to nobody, stay as they were.
    for (int64_t i = 0; layout.padded_length > 0 && i < layout.sequences(); ++i) {
      const int64_t end =
          layout.starts[static_cast<size_t>(i)] + layout.lengths[static_cast<size_t>(i)];
      const int64_t next = (i + 1) * layout.padded_length;
      EXPECT_TRUE(out.narrow(0, end, next - end).eq(7).all().template item<bool>());
    }
  }
  void ExpectLikeTheReference(const LinearCase& sizes, const PlacedLayout& layout) {
    ExpectLikeTheReference(sizes, layout, layout);
  }
};
using Types = testing::Types<c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(LinearAttentionKernel, Types);

TYPED_TEST(LinearAttentionKernel, GivesTheReferencesRowsOfPackedCausalSequences) {
  this->ExpectLikeTheReference({}, LayoutOf({1, 64, 63, 65, 200}));
}

TYPED_TEST(LinearAttentionKernel, LeavesThePaddingAlone) {
  this->ExpectLikeTheReference({}, LayoutOf({3, 130, 100}, 130));
  this->ExpectLikeTheReference({.causal = false}, LayoutOf({3, 130, 100}, 130));
}

TYPED_TEST(LinearAttentionKernel, TakesHeadsOfEverySize) {
  for (const int64_t dim_head : {64, 128}) {
    this->ExpectLikeTheReference({.heads = 1, .dim_head = dim_head}, LayoutOf({150, 3}));
    this->ExpectLikeTheReference({.heads = 1, .dim_head = dim_head, .causal = false},
                                 LayoutOf({150, 3}));
  }
}

TYPED_TEST(LinearAttentionKernel, LooksOnlyAtEarlierBuckets) {
  for (const int64_t bucket : {2, 16, 64}) {
    this->ExpectLikeTheReference({.bucket = bucket}, LayoutOf({1, 70, 190}));
  }
}

TYPED_TEST(LinearAttentionKernel, LeavesOutMaskedKeys) {
  for (const bool causal : {false, true}) {
    for (const bool elu : {false, true}) {
      this->ExpectLikeTheReference({.elu = elu, .causal = causal, .masked = true},
                                   LayoutOf({2, 80, 140}));
    }
  }
}

TYPED_TEST(LinearAttentionKernel, ComputesTheFeaturesOfEluToo) {
  for (const bool causal : {false, true}) {
    for (const bool divided : {false, true}) {
      this->ExpectLikeTheReference({.elu = true, .causal = causal, .divided = divided},
                                   LayoutOf({2, 80, 140}));
    }
  }
}

TYPED_TEST(LinearAttentionKernel, CutsLongSequencesIntoParts) {
  for (const bool causal : {false, true}) {
    for (const bool elu : {false, true}) {
      const LinearCase sizes{
          .heads = 1, .elu = elu, .causal = causal, .masked = true, .multiprocessors = 4};
      this->ExpectLikeTheReference(sizes, LayoutOf({2100, 1, 700}));
    }
  }
}

TYPED_TEST(LinearAttentionKernel, ForgetsNoNaNInAnyPart) {
  this->ExpectLikeTheReference({.causal = false, .multiprocessors = 4, .nan = true},
                               LayoutOf({2100}));
}

TYPED_TEST(LinearAttentionKernel, AttendsToAContextOfAnotherLength) {
  this->ExpectLikeTheReference({.causal = false}, LayoutOf({3, 100}), LayoutOf({90, 65}));
}

TYPED_TEST(LinearAttentionKernel, StaysFiniteAndRightWhereFeaturesAreLarge) {
  for (const bool elu : {false, true}) {
    this->ExpectLikeTheReference({.elu = elu, .scale = 4}, LayoutOf({300, 20}));
    this->ExpectLikeTheReference({.elu = elu, .causal = false, .scale = 4}, LayoutOf({300, 20}));
  }
}

}  // namespace
}  // namespace linserve::cuda
