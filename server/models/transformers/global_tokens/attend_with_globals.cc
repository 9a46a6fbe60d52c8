#include "models/transformers/global_tokens/attend_with_globals.h"

#include <algorithm>
#include <memory>

#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"

namespace linserve::transformers {
namespace {

// Holds the global tokens of one sequence.
class Globals {
 public:
  explicit Globals(const SequenceWithGlobals& own)
      : count_(own.tokens.CountOf(own.sequence)),
        first_(own.tokens.bounds[own.sequence]),
        places_(own.tokens.places.const_data_ptr<int64_t>() + first_) {
    if (count_ == 0) return;
    LayOut(own);
    Attend(own);
  }

  // Adds them to what is seen besides the windows.
  void ShowIn(BlockAttention::Scores& scores, const GlobalTokens& tokens) const {
    if (count_ == 0) return;
    scores.others = {keys_.mutable_data_ptr<float>(), count_, kBlockRows};
    scores.of_others = tokens.scores.const_data_ptr<float>() + first_;
  }

  // Writes what those among `rows` rows from `place` on attend to.
  void Write(int64_t place, int64_t rows, const RowBlock& out) const {
    const int64_t* end = places_ + count_;
    for (const int64_t* at = std::lower_bound(places_, end, place); at != end && *at < place + rows;
         ++at) {
      const RowBlock row = BlockOf(attended_, at - places_);
      std::copy_n(row.data, row.stride, out.Rows(*at - place).data);
    }
  }

 private:
  // Lays out their keys and values by themselves.
  void LayOut(const SequenceWithGlobals& own) {
    const int64_t blocks = (count_ + kBlockRows - 1) / kBlockRows;
    const int64_t width = 2 * own.dim;
    keys_ = at::empty({blocks, own.whole.KeyElements(kBlockRows)}, own.qkv.options());
    ForSideBySide(0, blocks, kBlockRows * width + own.whole.ScratchElements(),
                  [&](int64_t block, float* scratch) {
                    const RowBlock rows{scratch, width};
                    const int64_t begin = block * kBlockRows;
                    const int64_t some = std::min(kBlockRows, count_ - begin);
                    for (int64_t i = 0; i < some; ++i) {
                      const RowBlock row = BlockOf(own.qkv, places_[begin + i]);
                      std::copy_n(row.Columns(own.dim).data, width, rows.Rows(i).data);
                    }
                    own.whole.LayOut(rows, rows.Columns(own.dim), some, BlockOf(keys_, block).data,
                                     rows.Rows(kBlockRows).data);
                  });
  }

  void Attend(const SequenceWithGlobals& own) {
    attended_ = at::empty({count_, own.dim}, own.qkv.options());
    if (!own.queries.defined()) return AttendTo(own.keys, own, QueriesIn(own), 0);
    const LaidOutKeys all(own.whole, own.keys.rows, own.whole.ScratchElements(),
                          [&](int64_t place, int64_t some, float* memory, float* scratch) {
                            const RowBlock rows = BlockOf(own.qkv, place);
                            own.whole.LayOut(rows.Columns(3 * own.dim), rows.Columns(4 * own.dim),
                                             some, memory, scratch);
                          });
    AttendTo(all.keys(), own, own.queries, first_);
  }

  // Returns the queries that they have as all rows do.
  at::Tensor QueriesIn(const SequenceWithGlobals& own) const {
    at::Tensor queries = at::empty({count_ + kFewestKernelRows, own.dim}, own.qkv.options());
    for (int64_t i = 0; i < count_; ++i) {
      std::copy_n(BlockOf(own.qkv, places_[i]).data, own.dim, BlockOf(queries, i).data);
    }
    return queries;
  }

  // Attends by the queries from `first` on.
  void AttendTo(const BlockAttention::Keys& keys, const SequenceWithGlobals& own,
                const at::Tensor& queries, int64_t first) const {
    ForBlocks(count_, own.whole.ScratchElements(),
              [&](int64_t begin, int64_t some, float* scratch) {
                own.whole.Attend(BlockOf(queries, first + begin), /*row=*/0, some, keys, own.scores,
                                 BlockOf(attended_, begin), scratch);
              });
  }

  int64_t count_;
  int64_t first_;
  const int64_t* places_;
  at::Tensor keys_;      // and values, laid out
  at::Tensor attended_;  // [count, dim]
};

}  // namespace

SelfAttentionByBlocks::Attend AttendWithGlobals(const SequenceWithGlobals& own) {
  const BlockAttention::Keys keys = own.keys;
  if (own.tokens.whole[own.sequence]) {
    return [&whole = own.whole, keys, scores = own.scores](
               const RowBlock& queries, int64_t place, int64_t count, const RowBlock& out,
               float* scratch) { whole.Attend(queries, place, count, keys, scores, out, scratch); };
  }
  const auto globals = std::make_shared<const Globals>(own);
  BlockAttention::Scores scores = own.scores;
  scores.of_keys = own.tokens.of_keys.const_data_ptr<float>() + own.start;
  globals->ShowIn(scores, own.tokens);
  return [globals, keys, scores, &windows = own.windows, dim = own.dim,
          of_keys = own.scores.of_keys](const RowBlock& queries, int64_t place, int64_t count,
                                        const RowBlock& out, float* scratch) {
    windows.Attend(queries, place, count, keys, scores, out, scratch);
    globals->Write(place, count, out);
    for (int64_t i = 0; of_keys != nullptr && i < count; ++i) {
      if (of_keys[place + i] < 0) std::fill_n(out.Rows(i).data, dim, 0.0F);
    }
  };
}

}  // namespace linserve::transformers
