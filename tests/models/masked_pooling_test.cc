#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "core/sequence/pooling.h"
#include "core/sequence/row_mask.h"
#include "models/model_fixture.h"
#include "support/golden_case.h"
#include "support/paths.h"

namespace linserve {
namespace {

struct MaskCase {
  const char* architecture;
  const char* params;
  const char* wrapper = "null";
};

// One of each architecture at least, and of each that has rows which a mask may hide.
constexpr const char* kBertSizes =
    R"({"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 42})";

constexpr const char* kEsmSizes =
    R"({"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 42, "pad_token_id": 1,
        "mask_token_id": 4})";

constexpr const char* kDistilBertSizes =
    R"({"vocab_size": 30, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16,
        "max_position_embeddings": 42})";

constexpr const char* kMolformerSizes =
    R"({"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16})";

constexpr const char* kLlamaSizes =
    R"({"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 16,
        "max_position_embeddings": 42})";

constexpr const char* kAnsweringSizes =
    R"({"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 16,
        "max_position_embeddings": 42, "true_token_id": 3})";

constexpr const char* kT5Sizes =
    R"({"vocab_size": 30, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2})";

const std::vector<MaskCase> kCases = {
    {"linformer.LinformerSelfAttention", R"({"dim": 16, "seq_len": 40, "k": 8, "heads": 2})"},
    {"linformer.Linformer", R"({"dim": 16, "seq_len": 40, "depth": 1, "k": 8, "heads": 2})"},
    {"linformer.LinformerLM",
     R"({"num_tokens": 30, "dim": 16, "seq_len": 40, "depth": 1, "k": 8, "heads": 2})"},
    {"math.softmax", R"({"causal": true})"},
    {"math.efficient", R"({"causal": true})"},
    {"math.kernel", R"({"causal": true})"},
    {"math.taylor", R"({"causal": true})"},
    {"math.linformer", "{}"},
    {"linserve.Encoder", R"({"dim": 16, "depth": 1, "heads": 2, "num_tokens": 30})"},
    {"transformers.BertModel", kBertSizes},
    {"transformers.RobertaModel", kBertSizes},
    {"transformers.XLMRobertaModel", kBertSizes},
    {"transformers.MPNetModel", kBertSizes},
    {"transformers.ModernBertModel", kBertSizes},
    {"transformers.NomicBertModel", kBertSizes},
    {"transformers.GteModel", kBertSizes},
    {"transformers.NystromformerModel", kBertSizes},
    {"sentence_transformers.StaticEmbedding", R"({"num_embeddings": 30, "embedding_dim": 16})"},
    {"model2vec.StaticModel", R"({"vocab_size": 30, "hidden_dim": 16, "weighted": true})"},
    {"transformers.AlbertModel", kBertSizes},
    {"transformers.LongformerModel", kBertSizes},
    {"transformers.BigBirdModel", kBertSizes},
    {"transformers.ElectraModel", kBertSizes},
    {"transformers.DebertaModel", kBertSizes},
    {"transformers.DebertaV2Model", kBertSizes},
    {"transformers.BertForSequenceClassification", kBertSizes},
    {"transformers.RobertaForSequenceClassification", kBertSizes},
    {"transformers.XLMRobertaForSequenceClassification", kBertSizes},
    {"transformers.MPNetForSequenceClassification", kBertSizes},
    {"transformers.ModernBertForSequenceClassification", kBertSizes},
    {"transformers.NomicBertForSequenceClassification", kBertSizes},
    {"transformers.GteForSequenceClassification", kBertSizes},
    {"transformers.NystromformerForSequenceClassification", kBertSizes},
    {"transformers.AlbertForSequenceClassification", kBertSizes},
    {"transformers.LongformerForSequenceClassification", kBertSizes},
    {"transformers.BigBirdForSequenceClassification", kBertSizes},
    {"transformers.ElectraForSequenceClassification", kBertSizes},
    {"transformers.DebertaForSequenceClassification", kBertSizes},
    {"transformers.DebertaV2ForSequenceClassification", kBertSizes},
    {"transformers.EsmModel", kEsmSizes},
    {"transformers.EsmForSequenceClassification", kEsmSizes},
    {"transformers.ErnieModel", kBertSizes},
    {"transformers.ErnieForSequenceClassification", kBertSizes},
    {"transformers.Data2VecTextModel", kBertSizes},
    {"transformers.Data2VecTextForSequenceClassification", kBertSizes},
    {"transformers.RobertaPreLayerNormModel", kBertSizes},
    {"transformers.RobertaPreLayerNormForSequenceClassification", kBertSizes},
    {"transformers.XLMRobertaXLModel", kBertSizes},
    {"transformers.XLMRobertaXLForSequenceClassification", kBertSizes},
    {"transformers.MegatronBertModel", kBertSizes},
    {"transformers.MegatronBertForSequenceClassification", kBertSizes},
    {"transformers.RoFormerModel", kBertSizes},
    {"transformers.RoFormerForSequenceClassification", kBertSizes},
    {"transformers.JinaEmbeddingsV3Model", kBertSizes},
    {"transformers.JinaEmbeddingsV3ForSequenceClassification", kBertSizes},
    {"jina_bert.JinaBertModel", kBertSizes},
    {"jina_bert.JinaBertForSequenceClassification", kBertSizes},
    {"transformers.BertForMaskedLM", kBertSizes},
    {"transformers.RobertaForMaskedLM", kBertSizes},
    {"transformers.XLMRobertaForMaskedLM", kBertSizes},
    {"transformers.ModernBertForMaskedLM", kBertSizes},
    {"transformers.DistilBertForMaskedLM", kDistilBertSizes},
    {"transformers.DistilBertModel", kDistilBertSizes},
    {"transformers.DistilBertForSequenceClassification", kDistilBertSizes},
    {"transformers.LlamaModel", kLlamaSizes},
    {"transformers.LlamaForSequenceClassification", kLlamaSizes},
    {"transformers.MistralModel", kLlamaSizes},
    {"transformers.MistralForSequenceClassification", kLlamaSizes},
    {"transformers.Qwen2Model", kLlamaSizes},
    {"transformers.Qwen2ForSequenceClassification", kLlamaSizes},
    {"transformers.Qwen3Model", kLlamaSizes},
    {"transformers.Qwen3ForSequenceClassification", kLlamaSizes},
    {"transformers.GemmaModel", kLlamaSizes},
    {"transformers.GemmaForSequenceClassification", kLlamaSizes},
    {"transformers.Gemma2Model", kLlamaSizes},
    {"transformers.Gemma2ForSequenceClassification", kLlamaSizes},
    {"transformers.Gemma3TextModel", kLlamaSizes},
    {"transformers.Gemma3TextForSequenceClassification", kLlamaSizes},
    {"transformers.Phi3Model", kLlamaSizes},
    {"transformers.GraniteModel", kLlamaSizes},
    {"transformers.SmolLM3Model", kLlamaSizes},
    {"transformers.Olmo2Model", kLlamaSizes},
    {"transformers.MinistralModel", kLlamaSizes},
    {"transformers.Phi3ForSequenceClassification", kLlamaSizes},
    {"transformers.SmolLM3ForSequenceClassification", kLlamaSizes},
    {"transformers.Olmo2ForSequenceClassification", kLlamaSizes},
    {"transformers.MinistralForSequenceClassification", kLlamaSizes},
    {"transformers.Lfm2Model", kLlamaSizes},
    {"transformers.EuroBertModel", kLlamaSizes},
    {"transformers.EuroBertForSequenceClassification",
     R"({"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 16, "classifier_pooling": "bos"})"},
    {"transformers.LlamaForCausalLM", kAnsweringSizes},
    {"transformers.MistralForCausalLM", kAnsweringSizes},
    {"transformers.Qwen2ForCausalLM", kAnsweringSizes},
    {"transformers.Qwen3ForCausalLM", kAnsweringSizes},
    {"transformers.GemmaForCausalLM", kAnsweringSizes},
    {"transformers.Gemma2ForCausalLM", kAnsweringSizes},
    {"transformers.Gemma3ForCausalLM", kAnsweringSizes},
    {"transformers.Phi3ForCausalLM", kAnsweringSizes},
    {"transformers.GraniteForCausalLM", kAnsweringSizes},
    {"transformers.SmolLM3ForCausalLM", kAnsweringSizes},
    {"transformers.Olmo2ForCausalLM", kAnsweringSizes},
    {"transformers.MinistralForCausalLM", kAnsweringSizes},
    {"transformers.Lfm2ForCausalLM", kAnsweringSizes},
    {"transformers.T5EncoderModel", kT5Sizes},
    {"transformers.MT5EncoderModel", kT5Sizes},
    {"transformers.UMT5EncoderModel", kT5Sizes},
    {"fairseq.LinformerRoberta",
     R"({"vocab_size": 30, "encoder_layers": 1, "encoder_embed_dim": 16,
         "encoder_attention_heads": 2, "encoder_ffn_embed_dim": 16, "max_positions": 40})"},
    {"fast_transformers.TransformerEncoder",
     R"({"n_layers": 1, "n_heads": 2, "query_dimensions": 8, "value_dimensions": 8})"},
    {"fast_transformers.TransformerDecoder",
     R"({"n_layers": 1, "n_heads": 2, "query_dimensions": 8, "value_dimensions": 8})"},
    {"molformer.MolformerModel", kMolformerSizes},
    {"molformer.MolformerForSequenceClassification", kMolformerSizes},
    {"linear_attention_transformer.ImageLinearAttention", R"({"chan": 4, "key_dim": 8})"},
    {"linear_multihead_attention.LinearMultiheadAttention",
     R"({"embed_dim": 16, "num_heads": 2, "seq_len": 40, "proj_k": 7})"},
    {"linear_detr.Transformer",
     R"({"d_model": 16, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1,
         "dim_feedforward": 16, "seq_len": 40, "num_queries": 40, "proj_k": 7})"},
    {"linear_detr.TransformerEncoderLayer",
     R"({"d_model": 16, "nhead": 2, "dim_feedforward": 16, "seq_len": 40, "proj_k": 7})"},
    {"linear_detr.TransformerDecoderLayer",
     R"({"d_model": 16, "nhead": 2, "dim_feedforward": 16, "seq_len": 40, "num_queries": 40,
         "proj_k": 7})"},
    {"linformer_pytorch.MHAttention",
     R"({"input_size": 40, "dim": 8, "channels": 16, "dim_k": 8, "nhead": 2})"},
    {"linformer_pytorch.Linformer",
     R"({"input_size": 40, "channels": 16, "dim_k": 8, "nhead": 2, "depth": 1})"},
    {"linformer_pytorch.Linformer",
     R"({"input_size": 40, "channels": 16, "dim_k": 8, "nhead": 2, "depth": 1})",
     R"({"type": "linformer_pytorch.Padder"})"},
    {"linformer_pytorch.LinformerLM",
     R"({"num_tokens": 30, "input_size": 40, "channels": 16, "dim_k": 8, "nhead": 2})"},
    {"linformer_pytorch.LinformerEncDec",
     R"({"enc_num_tokens": 30, "enc_input_size": 40, "enc_channels": 16, "enc_dim_k": 8,
         "dec_num_tokens": 30, "dec_input_size": 40, "dec_channels": 16, "dec_dim_k": 8})"},
    {"linear_attention_transformer.LinearAttentionTransformer",
     R"({"dim": 16, "depth": 1, "heads": 2, "max_seq_len": 40})"},
    {"linear_attention_transformer.LinearAttentionTransformer",
     R"({"dim": 16, "depth": 1, "heads": 2, "max_seq_len": 40, "n_local_attn_heads": 1,
         "local_attn_window_size": 8})",
     R"({"type": "linear_attention_transformer.Autopadder", "pad_left": true})"},
    {"linear_attention_transformer.LinearAttentionTransformerLM",
     R"({"num_tokens": 30, "dim": 16, "depth": 1, "heads": 2, "max_seq_len": 40})"},
    {"performer_pytorch.Performer",
     R"({"dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "local_attn_heads": 1,
         "local_window_size": 8})"},
    {"performer_pytorch.PerformerLM",
     R"({"num_tokens": 30, "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "max_seq_len": 40})"},
    {"linear_attention_transformer.EncoderDecoder",
     R"({"encoder": {"num_tokens": 30, "dim": 16, "depth": 1, "heads": 2, "max_seq_len": 40},
         "decoder": {"num_tokens": 30, "dim": 16, "depth": 1, "heads": 2, "max_seq_len": 40}})"},
};

constexpr std::array kPoolings = {Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kMax};

// What pooling makes of the rows at these places, in plain loops.
Tensor PooledByHand(const Tensor& rows, const std::vector<int64_t>& places, Pooling pooling) {
  const int64_t width = rows.shape()[1];
  std::vector<float> pooled(static_cast<size_t>(width));
  for (int64_t column = 0; column < width; ++column) {
    double sum = 0;
    float most = -std::numeric_limits<float>::infinity();
    for (const int64_t place : places) {
      const float value = rows.data<float>()[place * width + column];
      sum += value;
      most = std::max(most, value);
    }
    const auto at = [&](int64_t place) { return rows.data<float>()[place * width + column]; };
    pooled[static_cast<size_t>(column)] =
        pooling == Pooling::kMean   ? static_cast<float>(sum / static_cast<double>(places.size()))
        : pooling == Pooling::kCls  ? at(places.front())
        : pooling == Pooling::kLast ? at(places.back())
                                    : most;
  }
  return Tensor::FromFloats({width}, pooled);
}

class MaskedPoolingTest : public ModelFixture, public testing::WithParamInterface<MaskCase> {
 protected:
  // A sequence of `length` with all of its inputs, and masks by which one row at least is there.
  Item Sequence(const Signature& signature, int64_t length) {
    Item item;
    for (const InputSpec& spec : signature.inputs) {
      if (spec.kind == InputKind::kAttentionMask) continue;
      Shape shape;
      for (const Axis& axis : spec.axes) {
        const int64_t lettered = shape.empty() ? length : 4;  // widths are equal in a batch
        shape.push_back(axis.letter != '\0' ? lettered : axis.size);
      }
      if (spec.kind == InputKind::kMask) {
        item.inputs[spec.name] = SomeRows(length, spec.hides);
      } else if (spec.kind == InputKind::kToken) {
        item.inputs[spec.name] = Ids(length, spec.vocabulary);
      } else {
        item.inputs[spec.name] = RandomFloats(shape);
      }
    }
    return item;
  }

  Tensor SomeRows(int64_t length, bool hides) {
    const int64_t there = Any(0, length - 1);
    auto [mask, bytes] = Tensor::Allocate(DType::kBool, {length});
    std::bernoulli_distribution visible(0.5);
    for (int64_t i = 0; i < length; ++i) {
      bytes[i] = std::byte{(i == there || visible(random_)) != hides};
    }
    return mask;
  }

  void ExpectPooledRows(Model& model, const std::vector<Item>& items, const std::string& output,
                        Padding padding) {
    const Signature& signature = model.info().signature;
    const OutputSpec& spec = *signature.FindOutput(output);
    std::vector<Item> asked = items;
    for (Item& item : asked) item.options.outputs = {output};
    const auto rows = Compute(model, asked, padding);
    for (const Pooling pooling : kPoolings) {
      for (Item& item : asked) item.options.pooling = pooling;
      const auto pooled = Compute(model, asked, padding);
      for (size_t i = 0; i < asked.size(); ++i) {
        const Tensor& own = rows[i].at(output);
        std::vector<int64_t> places;
        const auto mask = asked[i].inputs.find(spec.mask);
        for (int64_t row = 0; row < own.shape()[0]; ++row) {
          const bool hides = signature.FindInput(spec.mask)->hides;
          if ((mask->second.bytes()[row] != std::byte{0}) != hides) places.push_back(row);
        }
        ASSERT_LT(LargestDifference(pooled[i].at(output), PooledByHand(own, places, pooling)), 1e-5)
            << Name(pooling) << " of " << output << ", " << Name(padding) << ", sequence " << i;
      }
    }
  }
};

TEST_P(MaskedPoolingTest, CountsTheRowsThatAreThereAndNoOthers) {
  const auto model = Make(GetParam().architecture, GetParam().params, GetParam().wrapper);
  ASSERT_NE(model, nullptr);
  const Signature& signature = model->info().signature;
  std::vector<Item> items;
  for (const int64_t length : {1, 40, 7, 40, 2, 23}) items.push_back(Sequence(signature, length));
  for (const OutputSpec& output : signature.outputs) {
    if (output.mask.empty() || !output.HasRows()) continue;
    std::vector<Item> own = items;
    for (Item& item : own) item.inputs.erase(output.unmasked_with);
    for (const Padding padding : {Padding::kPacked, Padding::kBucket, Padding::kZeros}) {
      ASSERT_NO_FATAL_FAILURE(ExpectPooledRows(*model, own, output.name, padding));
    }
  }
}

TEST_P(MaskedPoolingTest, NeedsARowThatIsThere) {
  const auto model = Make(GetParam().architecture, GetParam().params, GetParam().wrapper);
  ASSERT_NE(model, nullptr);
  const Signature& signature = model->info().signature;
  for (const OutputSpec& output : signature.outputs) {
    if (output.mask.empty() || !output.HasRows()) continue;
    Item item = Sequence(signature, 5);
    item.inputs.erase(output.unmasked_with);
    item.options.outputs = {output.name};
    const bool hides = signature.FindInput(output.mask)->hides;
    item.inputs[output.mask] = hides ? MaskOf(5, 0, 5) : MaskOf(5, 0, 0);
    for (const Pooling pooling : kPoolings) {
      item.options.pooling = pooling;
      const absl::Status status = Validate(signature, item);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("'" + output.mask + "'"));
    }
    item.options.pooling = Pooling::kNone;
    EXPECT_TRUE(Validate(signature, item).ok());
  }
}

// An architecture that gets a mask of its rows has to say what that means for pooling.
TEST_P(MaskedPoolingTest, IsSaidOfEveryOutputWhoseRowsHaveAMask) {
  const auto model = Make(GetParam().architecture, GetParam().params, GetParam().wrapper);
  ASSERT_NE(model, nullptr);
  const Signature& signature = model->info().signature;
  for (const OutputSpec& output : signature.outputs) {
    for (const InputSpec& input : signature.inputs) {
      if (input.kind != InputKind::kMask || input.axes[0] != output.axes[0]) continue;
      EXPECT_FALSE(output.mask.empty()) << output.name << " and " << input.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MaskedPoolingTest, testing::ValuesIn(kCases), [](const auto& param) {
  std::string name = param.param.architecture;
  std::replace(name.begin(), name.end(), '.', '_');
  return name + std::to_string(param.index);
});

TEST(MaskedPoolingCases, AreOfEveryArchitecture) {
  std::set<std::string> tried;
  for (const MaskCase& one : kCases) tried.insert(one.architecture);
  const std::vector<std::string> known = Architectures();
  EXPECT_EQ(tried, std::set<std::string>(known.begin(), known.end()));
}

class MaskedPoolingOfTargetsTest : public ModelFixture {};

TEST_F(MaskedPoolingOfTargetsTest, IsOfAllRowsWhereTheMaskIsOfOthers) {
  const auto model = Make("linformer_pytorch.LinformerEncDec",
                          R"({"enc_num_tokens": 30, "enc_input_size": 40, "enc_channels": 16,
                              "enc_dim_k": 8, "dec_num_tokens": 30, "dec_input_size": 40,
                              "dec_channels": 16, "dec_dim_k": 8})");
  Item item = Tokens(6, 30);
  item.inputs["y"] = Ids(6, 30);
  item.inputs["input_mask"] = MaskOf(6, 0, 2);
  const Tensor rows = Compute(*model, {item})[0].at("embeddings");
  item.options.pooling = Pooling::kMean;
  EXPECT_LT(LargestDifference(Compute(*model, {item})[0].at("embeddings"),
                              PooledByHand(rows, {0, 1, 2, 3, 4, 5}, Pooling::kMean)),
            1e-5);
}

// What the packages computed of sequences with masks, pooled here by hand.
TEST_F(MaskedPoolingOfTargetsTest, IsThatOfThePackagesRows) {
  size_t pooled = 0;
  for (const GoldenCase& golden : GoldenCases(DataFile("goldens"))) {
    // To load all of them would take most of the time.
    const bool masked =
        std::any_of(golden.tensors().begin(), golden.tensors().end(), [](const auto& entry) {
          return entry.first.starts_with("input.") && entry.first.find("mask") != std::string::npos;
        });
    if (golden.needs_zeros() || !masked) continue;
    const auto model = Load(golden.directory());
    const Signature& signature = model->info().signature;
    const OutputSpec& output = *signature.FindOutput(golden.outputs()[0]);
    if (!output.HasRows() || !golden.tensors().contains("input." + output.mask)) continue;
    for (size_t i = 0; i < golden.sequences(); ++i) {
      Item item{golden.Inputs(i), {{output.name}}};
      const Tensor rows = golden.Output(output.name, i);
      const auto mask = RowMask::Of(signature, output, item.inputs);
      if (!mask) continue;
      const auto places = mask->Rows(rows.shape()[0]);
      if (places.empty()) continue;
      for (const Pooling pooling : kPoolings) {
        item.options.pooling = pooling;
        EXPECT_LT(LargestDifference(Compute(*model, {item})[0].at(output.name),
                                    PooledByHand(rows, places, pooling)),
                  golden.tolerance())
            << golden.name() << " " << Name(pooling);
        ++pooled;
      }
    }
  }
  EXPECT_GT(pooled, 20u);
}

}  // namespace
}  // namespace linserve
