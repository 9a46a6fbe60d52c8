#include "models/transformers/options/bert_options.h"

#include <string>

#include "models/config/activation_param.h"
#include "models/config/hugging_face_config.h"
#include "models/transformers/options/rotary_options.h"
#include "models/transformers/positions/rotary_params.h"

namespace linserve::transformers {

void RefuseIf(Params& params, const char* key) {
  if (params.Flag(key, false)) params.Fail(key, "false: only encoders are computed");
}

Options BertSizes(Family family, Params& params, const UsualSizes& usual) {
  Options options{.family = family};
  options.vocabulary = params.Positive("vocab_size", usual.vocabulary);
  SetSizes(options, params, "hidden_size", "num_attention_heads", "intermediate_size", usual.inner,
           usual.dim, usual.heads);
  options.layers.resize(static_cast<size_t>(params.Depth("num_hidden_layers", usual.depth)));
  if (family != Family::kEsm) options.activation = ActivationParam(params, "hidden_act");
  options.eps = params.Number("layer_norm_eps", usual.eps, 0, 1);
  RefuseIf(params, "is_decoder");
  RefuseIf(params, "is_causal");
  RefuseIf(params, "add_cross_attention");
  options.types = family == Family::kMpnet || family == Family::kEsm
                      ? 0
                      : params.Positive("type_vocab_size", usual.types);
  options.pooler = params.Flag("add_pooling_layer", true);
  return options;
}

Options Bert(Family family, Params& params, const UsualSizes& usual) {
  Options options = BertSizes(family, params, usual);
  options.positions = params.Positive("max_position_embeddings", usual.positions);
  params.Choice("position_embedding_type", "absolute", {"absolute"});
  if (usual.padding >= 0) options.padding = params.NotNegative("pad_token_id", usual.padding);
  return options;
}

Options Roberta(Family family, Params& params) {
  UsualSizes usual{.vocabulary = 50265, .padding = 1};
  if (family == Family::kData2Vec) usual.vocabulary = 30522;
  if (family == Family::kXlmRobertaXl) {
    usual = {.vocabulary = 250880,
             .dim = 2560,
             .heads = 32,
             .inner = 10240,
             .depth = 36,
             .types = 1,
             .eps = 1e-5,
             .positions = 514,
             .padding = 1};
  }
  Options options = Bert(family, params, usual);
  options.pre_norm = family == Family::kXlmRobertaXl || family == Family::kRobertaPreNorm;
  options.unnormed_tables = family == Family::kXlmRobertaXl;
  return options;
}

Options Ernie(Params& params) {
  Options options = Bert(Family::kErnie, params, {});
  const int64_t tasks = params.Positive("task_type_vocab_size", 3);
  if (params.Flag("use_task_id", false)) options.tasks = tasks;
  return options;
}

Options MegatronBert(Params& params) {
  Options options =
      Bert(Family::kMegatronBert, params,
           {.vocabulary = 29056, .dim = 1024, .heads = 16, .inner = 4096, .depth = 24});
  options.pre_norm = true;
  options.unnormed_tables = true;
  return options;
}

Options RoFormer(Params& params) {
  constexpr double kTheta = 10000;
  Options options = BertSizes(Family::kRoFormer, params, {.vocabulary = 50000});
  CheckHalves(options, params);
  options.longest = params.Positive("max_position_embeddings", 1536);
  options.embedded = params.Positive("embedding_size", options.dim);
  options.projects = options.embedded != options.dim;
  options.norms_tables = true;
  for (LayerKind& layer : options.layers) layer.theta = kTheta;
  options.table = PositionTable::kRows;
  options.turns_neighbours = true;
  options.turns_values = params.Flag("rotary_value", false);
  options.pooler = false;
  return options;
}

namespace {

// Reads what makes rows of masked tokens zeros, and scales the others by how many there are.
void ReadTokenDropout(Options& options, Params& params) {
  if (!params.Flag("token_dropout", false)) return;
  options.mask_token = params.NotNegative("mask_token_id", -1);
  if (options.mask_token < 0) params.Fail("mask_token_id", "a token, since token_dropout is true");
}

}  // namespace

Options Esm(Params& params) {
  if (params.Flag("is_folding_model", false)) {
    params.Fail("is_folding_model", "false: ESMFold is not computed here");
  }
  params.Ignore("hidden_act");  // it is gelu, whatever this says
  Options options = BertSizes(Family::kEsm, params, {.vocabulary = params.Positive("vocab_size")});
  options.pre_norm = true;
  options.unnormed_tables = !params.Flag("emb_layer_norm_before", false);
  options.zeroes_hidden = true;
  ReadTokenDropout(options, params);
  if (params.Choice("position_embedding_type", "absolute", {"absolute", "rotary"}) == "absolute") {
    options.positions = params.Positive("max_position_embeddings", 1026);
    options.padding = params.NotNegative("pad_token_id", -1);
    if (options.padding < 0) params.Fail("pad_token_id", "a token, which has no position");
  } else {
    options.longest = LongestWithoutTable(params, "max_position_embeddings", 1026);
    CheckHalves(options, params);
    const double theta = params.Number("rope_theta", 10000, 1, kLargestTheta);
    for (LayerKind& layer : options.layers) layer.theta = theta;
    options.table = PositionTable::kFrequencies;
  }
  for (const char* key : {"mask_token_id", "esmfold_config", "vocab_list"}) params.Ignore(key);
  return options;
}

}  // namespace linserve::transformers
