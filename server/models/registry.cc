#include "models/registry.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_error.h"
#include "models/encoder/encoder.h"
#include "models/fairseq/linformer_roberta.h"
#include "models/fast_transformers/transformer.h"
#include "models/linear_attention_transformer/encoder_decoder.h"
#include "models/linear_attention_transformer/images/image_linear_attention.h"
#include "models/linear_attention_transformer/linear_attention_transformer.h"
#include "models/linear_multihead_attention/linear_detr.h"
#include "models/linear_multihead_attention/linear_multihead_attention.h"
#include "models/linformer/linformer.h"
#include "models/linformer_pytorch/linformer_pytorch.h"
#include "models/llama/model.h"
#include "models/math/math_models.h"
#include "models/molformer/molformer.h"
#include "models/performer_pytorch/performer.h"
#include "models/sentences/head_network.h"
#include "models/sentences/sentence_head.h"
#include "models/sparse/masked_lm.h"
#include "models/static/static_model.h"
#include "models/t5/model.h"
#include "models/transformers/classifier.h"
#include "models/transformers/encoder.h"

namespace linserve {
namespace {

using transformers::Family;

struct Row {
  const char* architecture;
  std::unique_ptr<Network> (*make)(Params&);
  // Is JSON: arguments of a model that is made anew, where the package's defaults would be a pity.
  const char* of_new_models = "{}";
};

constexpr std::array kRows = {
    Row{"linformer.LinformerSelfAttention", linformer::MakeSelfAttention},
    Row{"linformer.Linformer", linformer::MakeStack},
    Row{"linformer.LinformerLM", linformer::MakeLanguageModel},
    Row{"math.softmax", math::MakeSoftmax},
    Row{"math.efficient", math::MakeEfficient},
    Row{"math.kernel", math::MakeKernel},
    Row{"math.taylor", math::MakeTaylor},
    Row{"math.linformer", math::MakeLinformer},
    Row{"linserve.Encoder", encoder::MakeEncoder},
    Row{"linear_attention_transformer.ImageLinearAttention",
        linear_attention_transformer::MakeImageLinearAttention},
    Row{"linear_multihead_attention.LinearMultiheadAttention",
        linear_multihead_attention::MakeAttention,
        // What is trained anew should not depend on its neighbours in the batch.
        R"({"projection_layout": "corrected"})"},
    Row{"linear_detr.Transformer", linear_multihead_attention::MakeDetrTransformer},
    Row{"linear_detr.TransformerEncoderLayer", linear_multihead_attention::MakeDetrEncoderLayer},
    Row{"linear_detr.TransformerDecoderLayer", linear_multihead_attention::MakeDetrDecoderLayer},
    Row{"linformer_pytorch.MHAttention", linformer_pytorch::MakeAttention},
    Row{"linformer_pytorch.Linformer", linformer_pytorch::MakeStack},
    Row{"linformer_pytorch.LinformerLM", linformer_pytorch::MakeLanguageModel},
    Row{"linformer_pytorch.LinformerEncDec", linformer_pytorch::MakeEncoderDecoder},
    Row{"linear_attention_transformer.LinearAttentionTransformer",
        linear_attention_transformer::MakeStack},
    Row{"linear_attention_transformer.LinearAttentionTransformerLM",
        linear_attention_transformer::MakeLanguageModel},
    Row{"linear_attention_transformer.EncoderDecoder",
        linear_attention_transformer::MakeEncoderDecoder},
    Row{"performer_pytorch.Performer", performer_pytorch::MakeStack},
    Row{"performer_pytorch.PerformerLM", performer_pytorch::MakeLanguageModel},
    Row{"fast_transformers.TransformerEncoder", fast_transformers::MakeEncoder},
    Row{"fast_transformers.TransformerDecoder", fast_transformers::MakeDecoder},
    Row{"molformer.MolformerModel", molformer::MakeModel},
    Row{"molformer.MolformerForSequenceClassification", molformer::MakeClassifier},
    Row{"transformers.BertModel", transformers::MakeModel<Family::kBert>},
    Row{"transformers.RobertaModel", transformers::MakeModel<Family::kRoberta>},
    Row{"transformers.XLMRobertaModel", transformers::MakeModel<Family::kRoberta>},
    Row{"transformers.DistilBertModel", transformers::MakeModel<Family::kDistilBert>},
    Row{"transformers.MPNetModel", transformers::MakeModel<Family::kMpnet>},
    Row{"transformers.ModernBertModel", transformers::MakeModel<Family::kModernBert>},
    Row{"transformers.NystromformerModel", transformers::MakeModel<Family::kNystromformer>},
    Row{"transformers.NomicBertModel", transformers::MakeModel<Family::kNomicBert>},
    Row{"transformers.GteModel", transformers::MakeModel<Family::kGte>},
    Row{"transformers.DebertaModel", transformers::MakeModel<Family::kDeberta>},
    Row{"transformers.DebertaV2Model", transformers::MakeModel<Family::kDebertaV2>},
    Row{"transformers.ElectraModel", transformers::MakeModel<Family::kElectra>},
    Row{"transformers.AlbertModel", transformers::MakeModel<Family::kAlbert>},
    Row{"transformers.LongformerModel", transformers::MakeModel<Family::kLongformer>},
    Row{"transformers.BigBirdModel", transformers::MakeModel<Family::kBigBird>},
    Row{"transformers.BertForSequenceClassification", transformers::MakeClassifier<Family::kBert>},
    Row{"transformers.RobertaForSequenceClassification",
        transformers::MakeClassifier<Family::kRoberta>},
    Row{"transformers.XLMRobertaForSequenceClassification",
        transformers::MakeClassifier<Family::kRoberta>},
    Row{"transformers.DistilBertForSequenceClassification",
        transformers::MakeClassifier<Family::kDistilBert>},
    Row{"transformers.MPNetForSequenceClassification",
        transformers::MakeClassifier<Family::kMpnet>},
    Row{"transformers.ModernBertForSequenceClassification",
        transformers::MakeClassifier<Family::kModernBert>},
    Row{"transformers.NystromformerForSequenceClassification",
        transformers::MakeClassifier<Family::kNystromformer>},
    Row{"transformers.NomicBertForSequenceClassification",
        transformers::MakeClassifier<Family::kNomicBert>},
    Row{"transformers.GteForSequenceClassification", transformers::MakeClassifier<Family::kGte>},
    Row{"transformers.BertForMaskedLM", MakeSparseEncoder<Family::kBert>},
    Row{"transformers.RobertaForMaskedLM", MakeSparseEncoder<Family::kRoberta>},
    Row{"transformers.XLMRobertaForMaskedLM", MakeSparseEncoder<Family::kRoberta>},
    Row{"transformers.DistilBertForMaskedLM", MakeSparseEncoder<Family::kDistilBert>},
    Row{"transformers.ModernBertForMaskedLM", MakeSparseEncoder<Family::kModernBert>},
    Row{"transformers.DebertaForSequenceClassification",
        transformers::MakeClassifier<Family::kDeberta>},
    Row{"transformers.DebertaV2ForSequenceClassification",
        transformers::MakeClassifier<Family::kDebertaV2>},
    Row{"transformers.ElectraForSequenceClassification",
        transformers::MakeClassifier<Family::kElectra>},
    Row{"transformers.AlbertForSequenceClassification",
        transformers::MakeClassifier<Family::kAlbert>},
    Row{"transformers.LongformerForSequenceClassification",
        transformers::MakeClassifier<Family::kLongformer>},
    Row{"transformers.BigBirdForSequenceClassification",
        transformers::MakeClassifier<Family::kBigBird>},
    Row{"transformers.EsmModel", transformers::MakeModel<Family::kEsm>},
    Row{"transformers.EsmForSequenceClassification", transformers::MakeClassifier<Family::kEsm>},
    Row{"transformers.ErnieModel", transformers::MakeModel<Family::kErnie>},
    Row{"transformers.ErnieForSequenceClassification",
        transformers::MakeClassifier<Family::kErnie>},
    Row{"transformers.Data2VecTextModel", transformers::MakeModel<Family::kData2Vec>},
    Row{"transformers.Data2VecTextForSequenceClassification",
        transformers::MakeClassifier<Family::kData2Vec>},
    Row{"transformers.RobertaPreLayerNormModel", transformers::MakeModel<Family::kRobertaPreNorm>},
    Row{"transformers.RobertaPreLayerNormForSequenceClassification",
        transformers::MakeClassifier<Family::kRobertaPreNorm>},
    Row{"transformers.XLMRobertaXLModel", transformers::MakeModel<Family::kXlmRobertaXl>},
    Row{"transformers.XLMRobertaXLForSequenceClassification",
        transformers::MakeClassifier<Family::kXlmRobertaXl>},
    Row{"transformers.MegatronBertModel", transformers::MakeModel<Family::kMegatronBert>},
    Row{"transformers.MegatronBertForSequenceClassification",
        transformers::MakeClassifier<Family::kMegatronBert>},
    Row{"transformers.RoFormerModel", transformers::MakeModel<Family::kRoFormer>},
    Row{"transformers.RoFormerForSequenceClassification",
        transformers::MakeClassifier<Family::kRoFormer>},
    Row{"transformers.JinaEmbeddingsV3Model", transformers::MakeModel<Family::kJinaV3>},
    Row{"transformers.JinaEmbeddingsV3ForSequenceClassification",
        transformers::MakeClassifier<Family::kJinaV3>},
    Row{"jina_bert.JinaBertModel", transformers::MakeModel<Family::kJinaBert>},
    Row{"jina_bert.JinaBertForSequenceClassification",
        transformers::MakeClassifier<Family::kJinaBert>},
    Row{"transformers.LlamaModel", llama::MakeModel<llama::Family::kLlama>},
    Row{"transformers.MistralModel", llama::MakeModel<llama::Family::kMistral>},
    Row{"transformers.Qwen2Model", llama::MakeModel<llama::Family::kQwen2>},
    Row{"transformers.Qwen3Model", llama::MakeModel<llama::Family::kQwen3>},
    Row{"transformers.GemmaModel", llama::MakeModel<llama::Family::kGemma>},
    Row{"transformers.Gemma2Model", llama::MakeModel<llama::Family::kGemma2>},
    Row{"transformers.Gemma3TextModel", llama::MakeModel<llama::Family::kGemma3>},
    Row{"transformers.Phi3Model", llama::MakeModel<llama::Family::kPhi3>},
    Row{"transformers.GraniteModel", llama::MakeModel<llama::Family::kGranite>},
    Row{"transformers.SmolLM3Model", llama::MakeModel<llama::Family::kSmolLm3>},
    Row{"transformers.Olmo2Model", llama::MakeModel<llama::Family::kOlmo2>},
    Row{"transformers.MinistralModel", llama::MakeModel<llama::Family::kMinistral>},
    Row{"transformers.Lfm2Model", llama::MakeModel<llama::Family::kLfm2>},
    Row{"transformers.EuroBertModel", llama::MakeModel<llama::Family::kEuroBert>},
    Row{"transformers.LlamaForSequenceClassification",
        llama::MakeClassifier<llama::Family::kLlama>},
    Row{"transformers.MistralForSequenceClassification",
        llama::MakeClassifier<llama::Family::kMistral>},
    Row{"transformers.Qwen2ForSequenceClassification",
        llama::MakeClassifier<llama::Family::kQwen2>},
    Row{"transformers.Qwen3ForSequenceClassification",
        llama::MakeClassifier<llama::Family::kQwen3>},
    Row{"transformers.GemmaForSequenceClassification",
        llama::MakeClassifier<llama::Family::kGemma>},
    Row{"transformers.Gemma2ForSequenceClassification",
        llama::MakeClassifier<llama::Family::kGemma2>},
    Row{"transformers.Gemma3TextForSequenceClassification",
        llama::MakeClassifier<llama::Family::kGemma3>},
    Row{"transformers.Phi3ForSequenceClassification", llama::MakeClassifier<llama::Family::kPhi3>},
    Row{"transformers.SmolLM3ForSequenceClassification",
        llama::MakeClassifier<llama::Family::kSmolLm3>},
    Row{"transformers.Olmo2ForSequenceClassification",
        llama::MakeClassifier<llama::Family::kOlmo2>},
    Row{"transformers.MinistralForSequenceClassification",
        llama::MakeClassifier<llama::Family::kMinistral>},
    Row{"transformers.EuroBertForSequenceClassification",
        llama::MakeClassifier<llama::Family::kEuroBert>},
    Row{"transformers.LlamaForCausalLM", llama::MakeAnswering<llama::Family::kLlama>},
    Row{"transformers.MistralForCausalLM", llama::MakeAnswering<llama::Family::kMistral>},
    Row{"transformers.Qwen2ForCausalLM", llama::MakeAnswering<llama::Family::kQwen2>},
    Row{"transformers.Qwen3ForCausalLM", llama::MakeAnswering<llama::Family::kQwen3>},
    Row{"transformers.GemmaForCausalLM", llama::MakeAnswering<llama::Family::kGemma>},
    Row{"transformers.Gemma2ForCausalLM", llama::MakeAnswering<llama::Family::kGemma2>},
    Row{"transformers.Gemma3ForCausalLM", llama::MakeAnswering<llama::Family::kGemma3>},
    Row{"transformers.Phi3ForCausalLM", llama::MakeAnswering<llama::Family::kPhi3>},
    Row{"transformers.GraniteForCausalLM", llama::MakeAnswering<llama::Family::kGranite>},
    Row{"transformers.SmolLM3ForCausalLM", llama::MakeAnswering<llama::Family::kSmolLm3>},
    Row{"transformers.Olmo2ForCausalLM", llama::MakeAnswering<llama::Family::kOlmo2>},
    Row{"transformers.MinistralForCausalLM", llama::MakeAnswering<llama::Family::kMinistral>},
    Row{"transformers.Lfm2ForCausalLM", llama::MakeAnswering<llama::Family::kLfm2>},
    Row{"transformers.T5EncoderModel", t5::MakeEncoder<t5::Family::kT5>},
    Row{"transformers.MT5EncoderModel", t5::MakeEncoder<t5::Family::kMt5>},
    Row{"transformers.UMT5EncoderModel", t5::MakeEncoder<t5::Family::kUmt5>},
    Row{"fairseq.LinformerRoberta", fairseq::MakeLinformerRoberta},
    Row{"sentence_transformers.StaticEmbedding", static_models::MakeStaticEmbedding},
    Row{"model2vec.StaticModel", static_models::MakeStaticModel},
};

const Row& Find(const std::string& architecture) {
  for (const Row& row : kRows) {
    if (row.architecture == architecture) return row;
  }
  std::string known;
  for (const Row& row : kRows) known += std::string(known.empty() ? "" : ", ") + row.architecture;
  throw ConfigError("unknown architecture \"" + architecture + "\"; known are " + known);
}

}  // namespace

std::unique_ptr<Network> MakeNetwork(const NetworkConfig& config) {
  const Row& row = Find(config.architecture);
  Params arguments(config);
  std::unique_ptr<Network> network = row.make(arguments);
  arguments.RefuseUnknown();
  const SentenceModules& sentence = config.sentence;
  if (sentence.dense.empty() && !sentence.each_row && !sentence.leaves_out_prompts) return network;
  Head head = SentenceHead(network->signature(), config.sentence);
  return std::make_unique<HeadNetwork>(std::move(network), std::move(head));
}

nlohmann::json ArgumentsOfNewModels(const std::string& architecture) {
  return nlohmann::json::parse(Find(architecture).of_new_models);
}

std::vector<std::string> KnownArchitectures() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.architecture);
  return names;
}

}  // namespace linserve
