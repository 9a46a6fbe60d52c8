#include "cuda/kernels/softmax_attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/linformer/linformer_attention.h"
#include "cuda/kernel_fixture.h"
#include "cuda/kernels/softmax_attention_calls.h"

namespace linserve::cuda {
namespace {

struct RunKernel {
  template <int D, bool kDistances, typename T>
  void operator()(const SoftmaxAttentionArguments<T>& arguments, const BlockIndex& grid) const {
    using Kernel = SoftmaxAttention<T, D, kDistances>;
    RunGrid<T>(grid, Kernel::kSharedBytes,
               [&](const BlockIndex& at, T* shared) { Kernel::Run(arguments, at, shared); });
  }
};

// Expects the result's rows, but for what lies between sequences, which the reference may leave as
// it was and the kernel fills with zeros.
void ExpectRows(const at::Tensor& result, const at::Tensor& expected, const PlacedLayout& layout,
                const std::string& what) {
  ASSERT_TRUE(result.defined()) << what;
  for (size_t i = 0; i < layout.lengths.size(); ++i) {
    const int64_t start = layout.starts[i];
    const int64_t end = i + 1 < layout.starts.size() ? layout.starts[i + 1] : layout.rows;
    const int64_t length = layout.lengths[i];
    if (length > 0) {
      EXPECT_LT(Distance(result.narrow(0, start, length), expected.narrow(0, start, length)), 5e-3)
          << what << ", sequence " << i;
    }
    const at::Tensor padding = result.narrow(0, start + length, end - start - length);
    EXPECT_EQ(padding.to(at::kFloat).abs().sum().item<float>(), 0) << what;
  }
}

struct SlotsCase {
  int64_t heads = 2;
  int64_t kv_heads = 2;
  int64_t slots = 64;
  double scale = 1;  // of the queries
};

template <typename T>
class AttendToSlotsKernel : public testing::Test {
 protected:
  template <int D>
  void ExpectLikeTheReference(const SlotsCase& sizes, const PlacedLayout& layout) {
    const at::Tensor queries =
        Random({layout.rows, sizes.heads * D}, at::kFloat).mul_(sizes.scale).to(kTypeOf<T>);
    const at::Tensor keys =
        Random({layout.sequences(), sizes.slots, sizes.kv_heads * D}, kTypeOf<T>);
    const at::Tensor values = Random(keys.sizes(), kTypeOf<T>);
    const at::Tensor result =
        CallAttendToSlots(queries, keys, values, sizes.heads, TableOf(layout), RunKernel());
    ExpectRows(result,
               linserve::AttendToSlots(queries.to(at::kDouble), keys.to(at::kDouble),
                                       values.to(at::kDouble), sizes.heads, layout),
               layout, std::to_string(D) + " a head, " + std::to_string(sizes.slots) + " slots");
  }
};
using Types = testing::Types<c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(AttendToSlotsKernel, Types);

TYPED_TEST(AttendToSlotsKernel, GivesTheReferencesRowsOfPackedSequences) {
  this->template ExpectLikeTheReference<64>({}, LayoutOf({1, 64, 63, 65, 130}));
}

TYPED_TEST(AttendToSlotsKernel, GivesThemOfPaddedSequencesAndLeavesThePaddingAlone) {
  this->template ExpectLikeTheReference<32>({}, LayoutOf({3, 80, 50}, 80));
}

TYPED_TEST(AttendToSlotsKernel, TakesHeadsOfEverySize) {
  this->template ExpectLikeTheReference<32>({.heads = 3, .kv_heads = 3}, LayoutOf({70}));
  this->template ExpectLikeTheReference<96>({}, LayoutOf({20, 3}));
  this->template ExpectLikeTheReference<128>({}, LayoutOf({33}));
}

TYPED_TEST(AttendToSlotsKernel, TakesHeadsThatFillNoTile) {
  this->template ExpectLikeTheReference<8>({.heads = 3, .kv_heads = 3}, LayoutOf({70}));
  this->template ExpectLikeTheReference<48>({}, LayoutOf({20, 3}));
  this->template ExpectLikeTheReference<72>({.heads = 2, .kv_heads = 1}, LayoutOf({9}));
  this->template ExpectLikeTheReference<120>({}, LayoutOf({33}));
}

TYPED_TEST(AttendToSlotsKernel, TakesAnyNumberOfSlots) {
  for (const int64_t slots : {1, 8, 63, 100, 129, 256}) {
    this->template ExpectLikeTheReference<32>({.slots = slots}, LayoutOf({5, 17}));
  }
}

TYPED_TEST(AttendToSlotsKernel, LetsOneHeadOfKeysServeAll) {
  this->template ExpectLikeTheReference<32>({.heads = 4, .kv_heads = 1}, LayoutOf({5, 64}));
}

TYPED_TEST(AttendToSlotsKernel, StaysFiniteWhereScoresAreLarge) {
  this->template ExpectLikeTheReference<32>({.slots = 200, .scale = 100}, LayoutOf({40}));
}

struct RowsCase {
  int64_t heads = 2;
  int64_t key_heads = 2;
  int64_t window = -1;
  bool causal = false;
  bool distances = false;
};

// Returns the attention among the rows of one sequence, in F64: queries and result are [rows, heads
// · dim_head].
at::Tensor ReferenceAmongRows(const at::Tensor& queries, const at::Tensor& keys,
                              const at::Tensor& values, const RowsCase& sizes, double scale,
                              const at::Tensor& distances) {
  const int64_t length = queries.size(0);
  const auto by_head = [&](const at::Tensor& rows, int64_t heads) {
    return rows.unflatten(1, {heads, -1}).transpose(0, 1).repeat_interleave(sizes.heads / heads, 0);
  };
  const at::Tensor all = by_head(keys, sizes.key_heads).transpose(1, 2);
  at::Tensor scores = at::matmul(by_head(queries, sizes.heads), all);
  const at::Tensor places = at::arange(length);
  const at::Tensor away = places - places.unsqueeze(1);  // from query to key
  if (distances.defined()) {
    scores += distances.to(at::kDouble)
                  .index_select(1, (away + distances.size(1) / 2).flatten())
                  .view(scores.sizes());
  }
  at::Tensor hidden = at::zeros({length, length}, at::kBool);
  if (sizes.window >= 0) hidden |= away.abs() > sizes.window;
  if (sizes.causal) hidden |= away > 0;
  scores = (scores * scale).masked_fill(hidden, -INFINITY);
  return at::matmul(scores.softmax(-1), by_head(values, sizes.key_heads))
      .transpose(0, 1)
      .flatten(1);
}

// Returns the table of a layout as a recorded pass has it: made for sequences that fill their
// places.
LayoutTable TableFor(const PlacedLayout& layout) {
  if (layout.padded_length == 0) return TableOf(layout);
  PlacedLayout full = layout;
  std::fill(full.lengths.begin(), full.lengths.end(), layout.padded_length);
  LayoutTable table = TableOf(full);
  std::copy(layout.lengths.begin(), layout.lengths.end(),
            table.lengths.mutable_data_ptr<int32_t>());
  table.padded = true;
  return table;
}

template <typename T>
class AttendAmongRowsKernel : public testing::Test {
 protected:
  template <int D>
  void ExpectLikeTheReference(const RowsCase& sizes, const PlacedLayout& layout) {
    // As a joined product of queries, keys and values gives them.
    const int64_t keys_width = sizes.key_heads * D;
    const at::Tensor all = Random({layout.rows, sizes.heads * D + 2 * keys_width}, kTypeOf<T>);
    const std::vector<at::Tensor> parts =
        all.split_with_sizes({sizes.heads * D, keys_width, keys_width}, 1);
    const LayoutTable table = TableFor(layout);
    const double scale = 0.7 / std::sqrt(D);
    at::Tensor distances;
    if (sizes.distances) {
      distances = Random({sizes.heads, 2 * (table.longest + kDistancesBeyond) - 1}, at::kFloat)
                      .mul_(2 * std::sqrt(D));
    }
    const at::Tensor result = AttendAmongRows({.queries = parts[0],
                                               .keys = parts[1],
                                               .values = parts[2],
                                               .heads = sizes.heads,
                                               .layout = table,
                                               .scale = scale,
                                               .window = sizes.window,
                                               .causal = sizes.causal,
                                               .distances = distances},
                                              RunKernel());
    at::Tensor expected = at::zeros(parts[0].sizes(), at::kDouble);
    for (size_t i = 0; i < layout.lengths.size(); ++i) {
      const auto rows = [&](const at::Tensor& of) {
        return of.narrow(0, layout.starts[i], layout.lengths[i]);
      };
      if (layout.lengths[i] == 0) continue;
      rows(expected).copy_(
          ReferenceAmongRows(rows(parts[0]).to(at::kDouble), rows(parts[1]).to(at::kDouble),
                             rows(parts[2]).to(at::kDouble), sizes, scale, distances));
    }
    ExpectRows(result, expected, layout,
               std::to_string(D) + " a head, window " + std::to_string(sizes.window) +
                   (sizes.causal ? ", causal" : "") + (sizes.distances ? ", distances" : ""));
  }

  template <int D>
  void ExpectOfAllKinds(const PlacedLayout& layout) {
    for (const bool causal : {false, true}) {
      for (const bool distances : {false, true}) {
        for (const int64_t window : {-1, 0, 1, 15, 64, 100, 1000}) {
          ExpectLikeTheReference<D>({.window = window, .causal = causal, .distances = distances},
                                    layout);
        }
      }
    }
  }
};
TYPED_TEST_SUITE(AttendAmongRowsKernel, Types);

TYPED_TEST(AttendAmongRowsKernel, GivesTheReferencesRowsOfPackedSequencesOfAnyLengths) {
  this->template ExpectOfAllKinds<32>(LayoutOf({1, 64, 63, 65, 0, 16, 130, 17}));
}

TYPED_TEST(AttendAmongRowsKernel, GivesThemOfPaddedSequencesAndLeavesThePaddingAlone) {
  this->template ExpectOfAllKinds<64>(LayoutOf({3, 80, 50, 0, 64, 65, 140}, 140));
}

TYPED_TEST(AttendAmongRowsKernel, TakesHeadsOfEverySize) {
  this->template ExpectLikeTheReference<8>({.distances = true}, LayoutOf({70}));
  this->template ExpectLikeTheReference<48>({.causal = true}, LayoutOf({20, 3}));
  this->template ExpectLikeTheReference<96>({.window = 20}, LayoutOf({20, 100}));
  this->template ExpectLikeTheReference<128>({.window = 5, .distances = true}, LayoutOf({133}));
}

TYPED_TEST(AttendAmongRowsKernel, LetsHeadsShareKeys) {
  this->template ExpectLikeTheReference<64>({.heads = 6, .key_heads = 2, .causal = true},
                                            LayoutOf({5, 64, 90}));
  this->template ExpectLikeTheReference<32>(
      {.heads = 4, .key_heads = 1, .window = 40, .distances = true}, LayoutOf({5, 64, 90}));
}

TYPED_TEST(AttendAmongRowsKernel, RefusesDistancesThatEndTooSoon) {
  const PlacedLayout layout = LayoutOf({5});
  const LayoutTable table = TableOf(layout);
  const at::Tensor rows = Random({5, 32}, kTypeOf<TypeParam>);
  for (const at::Tensor& distances :
       {at::zeros({1, 2 * (5 + kDistancesBeyond) - 3}), at::zeros({2, 999}),
        at::zeros({1, 999}, at::kBFloat16), at::zeros({1, 1998}).slice(1, 0, 1998, 2)}) {
    EXPECT_THROW(AttendAmongRows({.queries = rows,
                                  .keys = rows,
                                  .values = rows,
                                  .heads = 1,
                                  .layout = table,
                                  .scale = 1,
                                  .distances = distances},
                                 RunKernel()),
                 c10::Error);
  }
}

// LibTorch's kernel has no distances, and aligns windows to the end of what is padded.
TYPED_TEST(AttendAmongRowsKernel, LeavesLongSequencesAndWideHeadsToTheLibrary) {
  struct Case {
    int64_t length;
    int64_t width;
    bool by_library;
    int64_t window = -1;
    bool distances = false;
    bool padded = false;
  };
  for (const Case& sizes :
       {Case{511, 64, false}, Case{512, 64, true}, Case{512, 32, false}, Case{512, 64, false, 7},
        Case{512, 64, false, -1, true}, Case{5, 136, true}, Case{5, 136, true, 7},
        Case{512, 64, true, -1, false, true}}) {
    const PlacedLayout layout = LayoutOf({sizes.length}, sizes.padded ? sizes.length + 8 : 0);
    const LayoutTable table = TableOf(layout);
    const at::Tensor rows = Random({layout.rows, sizes.width}, kTypeOf<TypeParam>);
    at::Tensor distances;
    if (sizes.distances) distances = at::zeros({1, 2 * (sizes.length + kDistancesBeyond) - 1});
    bool by_library = false;
    const at::Tensor result = CallSoftmaxAttention({.queries = rows,
                                                    .keys = rows,
                                                    .values = rows,
                                                    .heads = 1,
                                                    .layout = table,
                                                    .scale = 1,
                                                    .window = sizes.window,
                                                    .distances = distances},
                                                   RunKernel(), [&] {
                                                     by_library = true;
                                                     return rows;
                                                   });
    EXPECT_TRUE(result.defined());
    EXPECT_EQ(by_library, sizes.by_library) << sizes.length << " rows, heads of " << sizes.width;
  }
}

TYPED_TEST(AttendAmongRowsKernel, LeavesWideHeadsAndOtherTypesToOthers) {
  const PlacedLayout layout = LayoutOf({5});
  const LayoutTable table = TableOf(layout);
  const auto taken = [&](int64_t width, at::ScalarType type) {
    const at::Tensor rows = Random({5, width}, type);
    return AttendAmongRows({.queries = rows,
                            .keys = rows,
                            .values = rows,
                            .heads = 1,
                            .layout = table,
                            .scale = 1},
                           RunKernel())
        .defined();
  };
  EXPECT_TRUE(taken(128, kTypeOf<TypeParam>));
  EXPECT_FALSE(taken(136, kTypeOf<TypeParam>));
  EXPECT_FALSE(taken(12, kTypeOf<TypeParam>));
  EXPECT_FALSE(taken(64, at::kFloat));
}

}  // namespace
}  // namespace linserve::cuda
