#pragma once

#include <cstdint>
#include <vector>

#include "models/config/params.h"
#include "models/network/layers.h"
#include "models/transformers/experts/expert_options.h"
#include "models/transformers/global_tokens/global_tokens.h"
#include "models/transformers/positions/relative_positions.h"

namespace linserve::transformers {

enum class Family : uint8_t {
  kBert,
  kRoberta,
  kDistilBert,
  kMpnet,
  kModernBert,
  kNystromformer,
  kNomicBert,
  kGte,
  kDeberta,
  kDebertaV2,
  kElectra,
  kAlbert,
  kJinaBert,  // as published, with a gate
  kJinaCode,  // its later form, with norms of queries and keys
  kLongformer,
  kBigBird,
  kEsm,
  kErnie,
  kData2Vec,
  kRobertaPreNorm,
  kXlmRobertaXl,
  kMegatronBert,
  kRoFormer,
  kJinaV3
};

// Says what the attention of one layer sees, and how its queries and keys are turned.
struct LayerKind {
  int64_t window = -1;   // rows that a query sees on either side; -1: all
  double theta = 0;      // base of the rotary positions; 0: none
  int64_t run = 1;       // neighbouring rows that have one window around them
  bool experts = false;  // the feed-forward is one of several for each row

  bool operator==(const LayerKind&) const = default;
};

// Says what Nyströmformer's attention has besides.
struct Landmarks {
  int64_t count = 0;     // of means that stand for queries and keys; 0: attention is exact
  int64_t segment = 0;   // rows that each of them is the mean of
  bool by_head = false;  // where the pseudo-inverse begins
  int64_t kernel = 0;    // of the convolution that is added to the attended values; 0: none

  // Returns the one length that attention by landmarks takes.
  int64_t length() const { return count * segment; }
};

// Says what is added to the first layer's rows: a convolution of the rows that it reads.
struct RowKernel {
  int64_t size = 0;  // 0: there is none
  int64_t groups = 1;
  Activation activation = Activation::kTanh;
};

// Says which table of rotary positions a file may have, which counts then.
enum class PositionTable : uint8_t {
  kNone,
  kFrequencies,  // of pairs of features
  kRows          // of sines and cosines
};

// Holds what a configuration of any of these models says, in the terms of BERT.
struct Options {
  Family family = Family::kBert;
  int64_t vocabulary = 0;
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t inner = 0;             // of the feed-forward
  int64_t longest = 0;           // sequence
  int64_t positions = 0;         // rows of the table of positions; 0: there is none
  int64_t padding = -1;          // positions count other tokens only, from behind this one; -1: all
  int64_t unused_positions = 0;  // at the table's beginning, where positions count all tokens
  int64_t pad_token = 0;         // of the sequences that attention by landmarks makes longer
  int64_t mask_token = -1;       // rows of it are zeros, and the more there are, the larger others
  int64_t types = 0;             // of tokens; 0: there are none
  int64_t tasks = 0;             // of which tokens are; 0: there are none
  double eps = 1e-12;            // of the norms
  int64_t embedded = 0;          // width of the tables; 0: dim
  int64_t score_terms = 1;       // scores are scaled as if heads were so many times as wide
  double stretch = 1;            // rotary positions are taken over this
  PositionTable table = PositionTable::kNone;
  Landmarks landmarks{};
  RelativePositions relative{};
  RowKernel convolution{};
  GlobalRule globals{};
  ExpertOptions experts{};
  std::vector<LayerKind> layers{};
  std::vector<size_t> turns{};  // which layer comes when; empty: each once, in order
  int64_t group = 0;            // of so many layers each are the names; 0: there are no groups
  Activation activation = Activation::kGelu;
  bool gated = false;           // feed-forward
  bool gate_last = false;       // its second half is the one that is activated
  bool pre_norm = false;        // norms before attention and feed-forward, and one at the end
  bool first_unnormed = false;  // the first one of these is none
  bool attention_bias = true;
  bool query_bias = true;  // of queries, keys and values, too
  bool inner_bias = true;  // of the feed-forward's first product
  bool outer_bias = true;  // and of its second
  bool norm_bias = true;
  bool turns_neighbours = false;  // rotary positions do, in place of a head's two halves
  bool turns_values = false;      // and not only queries and keys
  bool distances = false;         // scores depend on them (MPNet)
  bool alibi = false;             // and fall with them (ALiBi)
  bool zeroes_hidden = false;     // what is read for hidden tokens is zeros
  bool hides_queries = false;     // a mask hides queries, too
  bool joined_by_head = false;    // queries, keys and values are, and keys have no bias
  bool scales_words = false;      // rows of the table of tokens are multiplied by the root of `dim`
  bool projects = false;          // rows of the tables are projected to `dim`
  bool norms_tables = false;      // the norm of their rows comes before that
  bool unnormed_tables = false;   // there is none
  bool pooler = false;

  int64_t dim_head() const { return dim / heads; }
  int64_t table_width() const { return embedded > 0 ? embedded : dim; }
  // Says what Network::Recordable() does: rows of a sequence meet in the device's kernel alone.
  bool Recordable() const;
  int64_t first_position() const { return padding < 0 ? unused_positions : padding + 1; }

  // Reads the configuration of a model of this family. Throws ConfigError.
  static Options From(Family family, Params& params);
};

}  // namespace linserve::transformers
