#include <algorithm>

#include "attention/rows/aten.h"
#include "attention/rows/slices.h"
#include "models/fast_transformers/attention.h"

// This part of Attention computes block by block.
namespace linserve::fast_transformers {

struct Attention::Work {
  const at::Tensor& target;
  const PlacedLayout& layout;
  const Source& source;
  const at::Tensor& rotation;
  const BlockStep& then;

  RowBlock Target(size_t sequence, int64_t place) const {
    return BlockOf(target, layout.starts[sequence] + place);
  }
  RowBlock SourceRows(size_t sequence, int64_t place) const {
    return BlockOf(source.rows, source.layout.starts[sequence] + place);
  }
};

namespace {

void Clear(const RowBlock& rows, int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i) std::fill_n(rows.Rows(i).data, width, 0.0F);
}

}  // namespace

bool Attention::WorksByBlocks() const {
  return query_.packed && (!options_.linear || features_.WorksByBlocks());
}

void Attention::AddByBlocks(const at::Tensor& target, const PlacedLayout& layout,
                            const Source& source, const at::Tensor& rotation,
                            const BlockStep& then) const {
  const Work work{target, layout, source, rotation, then};
  RowSlices slices;
  const auto alone = [&](size_t sequence) {
    if (!options_.linear) return AttendBySoftmax(work, sequence);
    options_.causal ? AttendCausally(work, sequence, slices)
                    : AttendLinearly(work, sequence, slices);
  };
  if (!source.rows.is_same(target)) {
    for (size_t i = 0; i < layout.starts.size(); ++i) alone(i);
    return;
  }
  ForSequenceGroups(
      layout, std::max(GroupScratch(), then.scratch_elements),
      [&](const SequenceGroup& group, float* scratch) { AttendGroup(work, group, scratch); },
      alone);
}

void Attention::SetTurned(const Linear& projection, const RowBlock& rows, int64_t place,
                          int64_t count, const at::Tensor& rotation, const RowBlock& out) const {
  projection.Set(out, rows, count);
  if (!rotation.defined()) return;
  RotateRows(out, count, options_.heads, options_.width, BlockOf(rotation, place));
}

void Attention::SetFeatures(const Linear& projection, const RowBlock& rows, int64_t place,
                            int64_t count, const at::Tensor& rotation, const RowBlock& out,
                            float* scratch) const {
  const RowBlock turned{scratch, inner()};
  SetTurned(projection, rows, place, count, rotation, turned);
  features_.blocks().Set(turned, count, options_.heads, out);
}

void Attention::HideKeys(const Source& source, int64_t row, int64_t count,
                         const RowBlock& keys) const {
  if (!source.mask.defined()) return;
  const bool* visible = source.mask.const_data_ptr<bool>() + row;
  for (int64_t i = 0; i < count; ++i) {
    if (!visible[i]) Clear(keys.Rows(i), 1, feature_inner());
  }
}

void Attention::SetKeys(const Work& work, size_t sequence, int64_t place, int64_t count,
                        const RowBlock& keys, const RowBlock& values, float* scratch) const {
  const int64_t there = std::clamp<int64_t>(work.source.layout.lengths[sequence] - place, 0, count);
  if (there > 0) {
    const RowBlock rows = work.SourceRows(sequence, place);
    SetFeatures(key_, rows, place, there, work.rotation, keys, scratch);
    value_.Set(values, rows, there);
    HideKeys(work.source, work.source.layout.starts[sequence] + place, there, keys);
  }
  // Causal queries may lie behind the last key.
  Clear(keys.Rows(there), count - there, feature_inner());
  Clear(values.Rows(there), count - there, value_inner());
}

void Attention::Finish(const Work& work, int64_t row, int64_t count, const RowBlock& attended,
                       float* scratch) const {
  out_.Add(BlockOf(work.target, row), attended, count);
  if (work.then.apply) work.then.apply(row, count, scratch);
}

int64_t Attention::GroupScratch() const {
  const int64_t values = kBlockRows * value_inner();
  if (options_.linear) {
    return values + kBlockRows * (2 * feature_inner() + inner()) + linear_.SumElements() +
           linear_.ScratchElements();
  }
  return values + (BlockAttention::kReadableRows + kBlockRows) * inner() +
         softmax_.KeyElements(kBlockRows) + softmax_.ScratchElements();
}

void Attention::AttendGroup(const Work& work, const SequenceGroup& group, float* scratch) const {
  const RowBlock values{scratch, value_inner()};
  float* rest = values.Rows(kBlockRows).data;
  value_.Set(values, BlockOf(work.source.rows, group.row), group.rows);
  if (options_.linear) {
    AttendGroupLinearly(work, group, values, rest);
  } else {
    AttendGroupBySoftmax(work, group, values, rest);
  }
  Finish(work, group.row, group.rows, values, scratch);
}

// The results take the place of the values.
void Attention::AttendGroupLinearly(const Work& work, const SequenceGroup& group,
                                    const RowBlock& values, float* scratch) const {
  const RowBlock queries{scratch, feature_inner()};
  const RowBlock keys = queries.Rows(kBlockRows);
  float* turned = keys.Rows(kBlockRows).data;
  float* sums = turned + kBlockRows * inner();
  float* own = sums + linear_.SumElements();
  const RowBlock rows = BlockOf(work.target, group.row);
  for (const auto& [projection, out] :
       {std::pair<const Linear&, const RowBlock&>{query_, queries}, {key_, keys}}) {
    projection.Set({turned, inner()}, rows, group.rows);
    for (size_t i = group.first; i < group.end() && work.rotation.defined(); ++i) {
      RotateRows({turned + (work.layout.starts[i] - group.row) * inner(), inner()},
                 work.layout.lengths[i], options_.heads, options_.width, BlockOf(work.rotation));
    }
    features_.blocks().Set({turned, inner()}, group.rows, options_.heads, out);
  }
  HideKeys(work.source, group.row, group.rows, keys);
  for (size_t i = group.first; i < group.end(); ++i) {
    const int64_t first = work.layout.starts[i] - group.row;
    const int64_t count = work.layout.lengths[i];
    const RowBlock own_values = values.Rows(first);
    std::fill_n(sums, linear_.SumElements(), 0.0F);
    for (int64_t head = 0; head < options_.heads; ++head) {
      if (options_.causal) {
        linear_.AttendCausally(head, queries.Rows(first), keys.Rows(first), own_values, count, sums,
                               own);
      } else {
        linear_.Add(head, keys.Rows(first), own_values, count, sums, own);
        linear_.Attend(head, queries.Rows(first), count, sums, own_values, own);
      }
    }
  }
}

void Attention::AttendGroupBySoftmax(const Work& work, const SequenceGroup& group,
                                     const RowBlock& values, float* scratch) const {
  const RowBlock queries{scratch, inner()};
  const RowBlock keys = queries.Rows(BlockAttention::kReadableRows);
  float* memory = keys.Rows(kBlockRows).data;
  float* own = memory + softmax_.KeyElements(kBlockRows);
  const RowBlock rows = BlockOf(work.target, group.row);
  query_.Set(queries, rows, group.rows);
  key_.Set(keys, rows, group.rows);
  for (size_t i = group.first; i < group.end(); ++i) {
    const int64_t start = work.layout.starts[i];
    const int64_t first = start - group.row;
    const int64_t count = work.layout.lengths[i];
    BlockAttention::Scores scores;
    if (work.source.key_scores.defined()) {
      scores.of_keys = work.source.key_scores.const_data_ptr<float>() + start;
    }
    softmax_.LayOut(keys.Rows(first), values.Rows(first), count, memory, own);
    softmax_.Attend(queries.Rows(first), 0, count, {memory, count, kBlockRows}, scores,
                    values.Rows(first), own);
  }
}

void Attention::AttendLinearly(const Work& work, size_t sequence, RowSlices& slices) const {
  const int64_t turned = kBlockRows * inner();
  const at::Tensor sums = at::zeros({linear_.SumElements()}, at::kFloat);
  float* all_sums = sums.mutable_data_ptr<float>();
  slices.ForEach(
      work.source.layout.lengths[sequence], feature_inner() + value_inner(), turned,
      [&](int64_t place, int64_t count, const RowBlock& out, float* scratch) {
        SetKeys(work, sequence, place, count, out, out.Columns(feature_inner()), scratch);
      },
      [&](int64_t, int64_t count, const RowBlock& rows) {
        ForSideBySide(
            0, options_.heads, linear_.ScratchElements(), [&](int64_t head, float* scratch) {
              linear_.Add(head, rows, rows.Columns(feature_inner()), count, all_sums, scratch);
            });
      });
  const int64_t own =
      turned + kBlockRows * (feature_inner() + value_inner()) + linear_.ScratchElements();
  ForSlicedBlocks(work.layout.lengths[sequence], std::max(own, work.then.scratch_elements),
                  [&](int64_t place, int64_t count, float* scratch) {
                    const RowBlock queries{scratch + turned, feature_inner()};
                    const RowBlock attended{queries.Rows(kBlockRows).data, value_inner()};
                    float* rest = attended.Rows(kBlockRows).data;
                    SetFeatures(query_, work.Target(sequence, place), place, count, work.rotation,
                                queries, scratch);
                    for (int64_t head = 0; head < options_.heads; ++head) {
                      linear_.Attend(head, queries, count, all_sums, attended, rest);
                    }
                    Finish(work, work.layout.starts[sequence] + place, count, attended, scratch);
                  });
}

void Attention::AttendCausally(const Work& work, size_t sequence, RowSlices& slices) const {
  const at::Tensor sums = at::zeros({linear_.SumElements()}, at::kFloat);
  const int64_t key_column = feature_inner();
  const int64_t value_column = 2 * feature_inner();
  slices.ForEach(
      work.layout.lengths[sequence], value_column + value_inner(), kBlockRows * inner(),
      [&](int64_t place, int64_t count, const RowBlock& out, float* scratch) {
        SetFeatures(query_, work.Target(sequence, place), place, count, work.rotation, out,
                    scratch);
        SetKeys(work, sequence, place, count, out.Columns(key_column), out.Columns(value_column),
                scratch);
      },
      [&](int64_t first, int64_t some, const RowBlock& rows) {
        const RowBlock values = rows.Columns(value_column);
        ForSideBySide(0, options_.heads, linear_.ScratchElements(),
                      [&](int64_t head, float* scratch) {
                        linear_.AttendCausally(head, rows, rows.Columns(key_column), values, some,
                                               sums.mutable_data_ptr<float>(), scratch);
                      });
        ForBlocks(some, work.then.scratch_elements,
                  [&](int64_t begin, int64_t count, float* scratch) {
                    Finish(work, work.layout.starts[sequence] + first + begin, count,
                           values.Rows(begin), scratch);
                  });
        RowsDone(some);
      });
}

LaidOutKeys Attention::LayOutKeys(const Work& work, size_t sequence) const {
  return {softmax_, work.source.layout.lengths[sequence],
          kBlockRows * (inner() + value_inner()) + softmax_.ScratchElements(),
          [&](int64_t place, int64_t count, float* memory, float* scratch) {
            const RowBlock keys{scratch, inner()};
            const RowBlock values{keys.Rows(kBlockRows).data, value_inner()};
            const RowBlock rows = work.SourceRows(sequence, place);
            SetTurned(key_, rows, place, count, work.rotation, keys);
            value_.Set(values, rows, count);
            softmax_.LayOut(keys, values, count, memory, values.Rows(kBlockRows).data);
          }};
}

void Attention::AttendBySoftmax(const Work& work, size_t sequence) const {
  const LaidOutKeys laid_out = LayOutKeys(work, sequence);
  BlockAttention::Scores scores;
  if (work.source.key_scores.defined()) {
    scores.of_keys =
        work.source.key_scores.const_data_ptr<float>() + work.source.layout.starts[sequence];
  }
  const int64_t own = BlockAttention::kReadableRows * inner() + kBlockRows * value_inner() +
                      softmax_.ScratchElements();
  ForSlicedBlocks(
      work.layout.lengths[sequence], std::max(own, work.then.scratch_elements),
      [&](int64_t place, int64_t count, float* scratch) {
        const RowBlock queries{scratch, inner()};
        const RowBlock attended{queries.Rows(BlockAttention::kReadableRows).data, value_inner()};
        SetTurned(query_, work.Target(sequence, place), place, count, work.rotation, queries);
        softmax_.Attend(queries, place, count, laid_out.keys(), scores, attended,
                        attended.Rows(kBlockRows).data);
        Finish(work, work.layout.starts[sequence] + place, count, attended, scratch);
      });
}

}  // namespace linserve::fast_transformers
