#include "models/transformers/embeddings.h"

#include <algorithm>
#include <cmath>

#include "attention/positions/positions.h"
#include "attention/products/block_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "models/transformers/names.h"
#include "models/transformers/token_dropout.h"

namespace linserve::transformers {

Embeddings::Embeddings(const Options& options)
    : options_(options),
      project_(options.table_width(), options.dim, /*biased=*/options.norms_tables),
      norm_(options.norms_tables ? options.table_width() : options.dim, options.eps,
            options.norm_bias) {}

void Embeddings::Declare(const Scope& scope) {
  const Names& names = NamesOf(options_.family);
  const auto table = [&](const char* name, at::Tensor& slot, int64_t rows) {
    if (rows > 0)
      (scope / name).Declare("weight", slot, {rows, options_.table_width()}, Init::kNormal);
  };
  words_.Declare(scope / names.words, options_.vocabulary, options_.table_width());
  table(names.positions, positions_, options_.positions);
  // DeBERTa's and ESM's files have this table even where it is not added to rows.
  const bool others = options_.relative.defined() || options_.table == PositionTable::kFrequencies;
  if (options_.positions == 0 && others) {
    (scope / names.positions).LeavesOut("weight");
  }
  table(names.types, types_, options_.types);
  table("embeddings.task_type_embeddings", tasks_, options_.tasks);
  if (projects()) project_.Declare(scope / names.embedding_projection);
  if (!options_.unnormed_tables) DeclareNorm(scope / names.embedding_norm, norm_);
}

at::Tensor Embeddings::operator()(const at::Tensor& ids, const TokenKinds& kinds,
                                  const Context& context) const {
  at::Tensor rows =
      words_.is_cpu() ? ByBlocks(ids, kinds, context) : ByTensors(ids, kinds, context);
  if (options_.zeroes_hidden && context.mask.defined()) {
    rows.masked_fill_(context.mask.logical_not().unsqueeze(1), 0);
  }
  return rows;
}

at::Tensor Embeddings::ByTensors(const at::Tensor& ids, const TokenKinds& kinds,
                                 const Context& context) const {
  at::Tensor rows = words_(ids);
  if (options_.scales_words) {
    rows.mul_(at::scalar_tensor(std::sqrt(static_cast<double>(options_.dim)), rows.options()));
  }
  if (options_.mask_token >= 0) {
    rows.mul_(TokenFactors(ids, options_.mask_token, context).unsqueeze(1));
  }
  const auto add = [&](const at::Tensor& table, const at::Tensor& of) {
    if (table.defined()) rows.add_(of.defined() ? at::embedding(table, of) : table.select(0, 0));
  };
  add(types_, kinds.types);
  add(tasks_, kinds.tasks);
  if (positions_.defined()) AddPositionsOf(rows, ids, context.layout);
  if (options_.unnormed_tables) return rows;
  if (!projects()) return norm_(rows);
  return options_.norms_tables ? project_(norm_(rows)) : norm_(project_(rows));
}

at::Tensor Embeddings::ByBlocks(const at::Tensor& ids, const TokenKinds& kinds,
                                const Context& context) const {
  const at::Tensor words = ids.contiguous();
  const at::Tensor types = kinds.types.defined() ? kinds.types.contiguous() : kinds.types;
  const at::Tensor tasks = kinds.tasks.defined() ? kinds.tasks.contiguous() : kinds.tasks;
  const int64_t* word = words.const_data_ptr<int64_t>();
  const int64_t* type = types.defined() ? types.const_data_ptr<int64_t>() : nullptr;
  const int64_t* task = tasks.defined() ? tasks.const_data_ptr<int64_t>() : nullptr;
  const auto root = static_cast<float>(std::sqrt(static_cast<double>(options_.dim)));
  std::vector<int64_t> places;
  if (positions_.defined()) places = PlacesOf(word, words.numel(), context.layout);
  std::vector<float> factors;
  if (options_.mask_token >= 0) {
    factors = TokenFactors(word, words.numel(), options_.mask_token, context);
  }
  at::Tensor rows = at::empty({words.numel(), options_.dim}, options());
  const int64_t width = options_.table_width();
  const int64_t scratch = projects() ? (kBlockRows + kFewestKernelRows) * width : 0;
  ForBlocks(words.numel(), scratch, [&](int64_t begin, int64_t count, float* apart) {
    const RowBlock out = BlockOf(rows, begin);
    const RowBlock block = projects() ? RowBlock(apart, width) : out;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = begin + i;
      words_.Copy(word[row], block.Rows(i).data);
      if (options_.scales_words) ScaleRows(block.Rows(i), 1, width, &root);
      if (!factors.empty()) ScaleRows(block.Rows(i), 1, width, &factors[static_cast<size_t>(row)]);
      const auto add = [&](const at::Tensor& table, int64_t of) {
        AddBias(block.Rows(i), 1, width, BlockOf(table, of).data);
      };
      if (types_.defined()) add(types_, type != nullptr ? type[row] : 0);
      if (tasks_.defined()) add(tasks_, task != nullptr ? task[row] : 0);
      if (positions_.defined()) add(positions_, places[static_cast<size_t>(row)]);
    }
    if (options_.norms_tables) norm_.Set(block, block, count);
    if (projects()) project_.Set(out, block, count);
    if (!options_.norms_tables && !options_.unnormed_tables) norm_.Set(out, out, count);
  });
  return rows;
}

std::vector<int64_t> Embeddings::PlacesOf(const int64_t* ids, int64_t rows,
                                          const PlacedLayout& layout) const {
  std::vector<int64_t> places(static_cast<size_t>(rows));
  const int64_t padding = options_.padding;
  for (size_t i = 0; i < layout.lengths.size(); ++i) {
    int64_t next = padding < 0 ? options_.first_position() : padding + 1;
    for (int64_t row = layout.starts[i]; row < layout.starts[i] + layout.lengths[i]; ++row) {
      const bool counts = padding < 0 || ids[row] != padding;
      places[static_cast<size_t>(row)] = counts ? next++ : padding;
    }
  }
  return places;
}

void Embeddings::AddPositionsOf(at::Tensor& rows, const at::Tensor& ids,
                                const PlacedLayout& layout) const {
  const int64_t before = options_.first_position();
  const at::Tensor table = positions_.narrow(0, before, positions_.size(0) - before);
  if (options_.padding < 0) return AddPositions(rows, layout, table);
  rows.add_(at::embedding(positions_, PlacesOfTokens(ids, layout, options_.padding)));
}

}  // namespace linserve::transformers
