#include "models/performer_pytorch/options.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/config/activation_param.h"

namespace linserve::performer_pytorch {
namespace {

constexpr const char* kLocalHeads = "local_attn_heads";

std::vector<int64_t> LocalHeadsOf(Params& params, const Options& options) {
  std::vector<int64_t> heads =
      params.NotNegativeList(kLocalHeads).value_or(std::vector<int64_t>{0});
  if (heads.size() == 1) {
    heads = std::vector<int64_t>(static_cast<size_t>(options.depth), heads[0]);
  } else if (heads.size() != static_cast<size_t>(options.depth)) {
    params.Fail(kLocalHeads, "an integer, or one for each of depth = " +
                                 std::to_string(options.depth) + " layers");
  }
  if (std::any_of(heads.begin(), heads.end(),
                  [&](int64_t local) { return local > options.heads; })) {
    params.Fail(kLocalHeads, "at most heads = " + std::to_string(options.heads));
  }
  return heads;
}

Options::Kernel KernelOf(Params& params) {
  const bool generalized = params.Flag("generalized_attention", false);
  if (params.Flag("no_projection", false)) return Options::Kernel::kSoftmaxed;
  return generalized ? Options::Kernel::kGeneralized : Options::Kernel::kSoftmax;
}

Options::Norm NormOf(Params& params) {
  const bool rezero = params.Flag("use_rezero", false);
  if (params.Flag("use_scalenorm", false)) return Options::Norm::kScale;
  return rezero ? Options::Norm::kReZero : Options::Norm::kLayer;
}

int64_t HeadWidthOf(Params& params, const Options& options, const Defaults& defaults) {
  if (options.dim % options.heads != 0) {
    params.Fail("dim", "a multiple of heads = " + std::to_string(options.heads));
  }
  if (params.IsNone("dim_head")) return params.Positive("dim_head", options.dim / options.heads);
  return defaults.dim_head ? params.Positive("dim_head", *defaults.dim_head)
                           : params.Positive("dim_head");
}

int64_t FeaturesOf(Params& params, const Options& options) {
  if (const auto given = params.OptionalPositive("nb_features")) return *given;
  const auto width = static_cast<double>(options.dim_head);
  const auto usual = static_cast<int64_t>(width * std::log(width));
  if (usual < 1) {
    params.Fail("nb_features", "a number with dim_head = 1, since dim_head · ln(dim_head) is none");
  }
  return usual;
}

void CheckCombinations(const Params& params, const Options& options) {
  if (options.has_local_heads() && options.dim_head % 2 != 0) {
    params.Fail("dim_head",
                "an even width with local_attn_heads, whose positions are rotary; it is " +
                    std::to_string(options.dim_head));
  }
  constexpr int64_t kLongestWindow = int64_t{1} << 16;
  if (options.has_local_heads() && options.local_window_size > kLongestWindow) {
    params.Fail("local_window_size",
                "at most 65536, since sequences are filled up to whole windows");
  }
  constexpr int64_t kWidest = int64_t{1} << 31;
  if (options.ff_mult > kWidest / options.dim) {
    params.Fail("ff_mult", "at most 2147483648 / dim");
  }
  const int64_t groups = std::ssize(options.shifts());
  if (options.shift_tokens && options.dim < groups) {
    params.Fail("dim", "at least " + std::to_string(groups) +
                           " with shift_tokens: that many groups of features are shifted");
  }
}

std::vector<int64_t> AxialShapeOf(Params& params, int64_t max_seq_len) {
  constexpr const char* kShape = "axial_position_shape";
  constexpr int64_t kUsualWidth = 64;
  const auto given = params.NotNegativeList(kShape);
  if (!given) return {(max_seq_len + kUsualWidth - 1) / kUsualWidth, kUsualWidth};
  double product = 1;
  for (const int64_t axis : *given) product *= static_cast<double>(axis);
  constexpr double kMost = int64_t{1} << 31;
  if (!params.IsList(kShape) || given->empty() || product < 1 || product > kMost) {
    params.Fail(kShape, "a list of axes such as [64, 64], whose product is in [1, 2147483648]");
  }
  return *given;
}

PositionOptions::Kind PositionsOf(Params& params) {
  const bool axial = params.Flag("axial_position_emb", false);
  if (params.Flag("rotary_position_emb", true)) return PositionOptions::Kind::kRotary;
  return axial ? PositionOptions::Kind::kAxial : PositionOptions::Kind::kLearned;
}

// An argument that scBERT's own copy of the class has, and the package's has not.
constexpr const char* kGenePositions = "g2v_position_emb";

// Makes the stack that of scBERT's code, which lacks some of the package's options.
PositionOptions::Kind PositionsOfScBert(Params& params, Options& stack) {
  const auto require = [&](const char* key, bool value, bool expected) {
    if (value == expected) return;
    params.Fail(key, std::string(expected ? "true" : "false") + " with " + kGenePositions +
                         ", which makes it the PerformerLM of scBERT's code");
  };
  for (const char* positions : {"rotary_position_emb", "axial_position_emb"}) {
    require(positions, params.Flag(positions, false), false);
  }
  require("attn_out_bias", stack.attn_out_bias, true);
  require("shift_tokens", stack.shift_tokens, false);
  require("cross_attend", stack.cross_attend, false);
  stack.heads_share_shift = true;
  return params.Flag(kGenePositions, true) ? PositionOptions::Kind::kLearned
                                           : PositionOptions::Kind::kNone;
}

void CheckPositions(const Params& params, const LanguageModelOptions& options) {
  if (options.positions != PositionOptions::Kind::kRotary) return;
  constexpr const char* kWithRotary = " with rotary_position_emb, which is the default";
  if (params.IsNone("dim_head")) params.Fail("dim_head", std::string("a width") + kWithRotary);
  if (options.stack.dim_head % 2 != 0) {
    params.Fail("dim_head", std::string("an even width") + kWithRotary + "; it is " +
                                std::to_string(options.stack.dim_head));
  }
  if (options.stack.dim % 2 != 0) {
    params.Fail("dim", std::string("an even width") + kWithRotary);
  }
}

}  // namespace

bool Options::has_local_heads() const {
  return std::any_of(local_attn_heads.begin(), local_attn_heads.end(),
                     [](int64_t local) { return local > 0; });
}

std::vector<int64_t> Options::shifts() const {
  return causal ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{-1, 0, 1};
}

Options Options::From(Params& params, const Defaults& defaults) {
  Options options;
  options.dim = params.Positive("dim");
  options.depth = params.Depth("depth");
  options.heads = params.Positive("heads");
  options.dim_head = HeadWidthOf(params, options, defaults);
  options.local_attn_heads = LocalHeadsOf(params, options);
  options.local_window_size = params.Positive("local_window_size", 256);
  options.causal = params.Flag("causal", false);
  options.ff_mult = params.Positive("ff_mult", 4);
  options.nb_features = FeaturesOf(params, options);
  options.reversible = params.Flag("reversible", false);
  options.kernel = KernelOf(params);
  options.kernel_fn = ActivationParam(params, "kernel_fn", "relu");
  options.norm = NormOf(params);
  options.ff_glu = params.Flag("ff_glu", false);
  options.cross_attend = params.Flag("cross_attend", false);
  options.qkv_bias = params.Flag("qkv_bias", defaults.qkv_bias);
  options.attn_out_bias = params.Flag("attn_out_bias", defaults.attn_out_bias);
  options.shift_tokens = params.Flag("shift_tokens", false);
  CheckCombinations(params, options);
  params.Positive("ff_chunks", 1);  // slices of the length: the same numbers
  for (const char* training :
       {"feature_redraw_interval", "auto_check_redraw", "ff_dropout", "attn_dropout"}) {
    params.Ignore(training);
  }
  return options;
}

std::string Options::SessionRefusal() const {
  if (!causal) return "causal is false, and every row attends to those after it";
  const bool global = std::any_of(local_attn_heads.begin(), local_attn_heads.end(),
                                  [this](int64_t local) { return local < heads; });
  if (kernel == Kernel::kSoftmax && global) {
    return "the features of its keys are taken relative to the largest key of the whole sequence, "
           "later rows included; with generalized_attention or no_projection they are not";
  }
  return "";
}

NetworkNotes Options::Notes() const {
  NetworkNotes notes;
  const char* names[] = {"random features of softmax", "generalized random features",
                         "softmaxed queries and keys"};
  notes.facts = {
      {"layers",
       std::to_string(depth * (cross_attend ? 2 : 1)) + (reversible ? ", reversible" : "")},
      {"attention", std::string(names[static_cast<size_t>(kernel)]) + (causal ? ", causal" : "")}};
  if (kernel != Kernel::kSoftmaxed) {
    notes.facts.emplace_back("features", std::to_string(nb_features) + " a head");
  }
  if (has_local_heads()) {
    notes.facts.emplace_back("window", std::to_string(local_window_size) + " rows");
  }
  return notes;
}

LanguageModelOptions LanguageModelOptions::From(Params& params) {
  LanguageModelOptions options;
  const bool of_scbert = params.Has(kGenePositions);
  options.stack =
      Options::From(params, {.dim_head = 64, .qkv_bias = false, .attn_out_bias = of_scbert});
  options.num_tokens = params.Positive("num_tokens");
  options.max_seq_len = params.Positive("max_seq_len");
  options.axial_shape = AxialShapeOf(params, options.max_seq_len);
  options.positions = of_scbert ? PositionsOfScBert(params, options.stack) : PositionsOf(params);
  CheckPositions(params, options);
  options.tie_embed = params.Flag("tie_embed", false);
  options.return_encodings = params.Call().Flag("return_encodings", false);
  params.Ignore("emb_dropout");
  return options;
}

int64_t LanguageModelOptions::LongestInput() const {
  if (positions != PositionOptions::Kind::kAxial) return max_seq_len;
  return std::min(max_seq_len, std::accumulate(axial_shape.begin(), axial_shape.end(), int64_t{1},
                                               std::multiplies<>()));
}

}  // namespace linserve::performer_pytorch
