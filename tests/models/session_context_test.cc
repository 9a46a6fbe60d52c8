#include <gmock/gmock.h>

#include <algorithm>

#include "models/fast_transformers/fixture.h"
#include "models/performer_pytorch/fixture.h"
#include "models/session_fixture.h"

namespace linserve {
namespace {

using testing::HasSubstr;

struct ContextCase {
  std::string name;
  std::string architecture;
  std::string params;
  std::string read;     // the input that is read chunk by chunk
  std::string context;  // the one that the first chunk brings
  std::string mask = context + "_mask";
};

void PrintTo(const ContextCase& test, std::ostream* out) { *out << test.name; }

const std::vector<ContextCase>& ContextCases() {
  static const std::vector<ContextCase> cases = {
      {"Stack", kLatStack,
       R"({"dim": 12, "depth": 2, "max_seq_len": 64, "heads": 3, "causal": true,
           "receives_context": true, "n_local_attn_heads": 1, "local_attn_window_size": 4})",
       "x", "context"},
      {"StackReversible", kLatStack,
       R"({"dim": 12, "depth": 2, "max_seq_len": 64, "heads": 2, "causal": true, "reversible": true,
           "receives_context": true, "shift_tokens": true, "blindspot_size": 3})",
       "x", "context"},
      {"LanguageModel", kLatLanguageModel,
       R"({"num_tokens": 30, "dim": 12, "depth": 2, "max_seq_len": 64, "heads": 3, "dim_head": 4,
           "causal": true, "receives_context": true, "use_rotary_emb": true})",
       "x", "context"},
      {"Performer", kPerformer,
       PerformerStack(R"("causal": true, "cross_attend": true, "generalized_attention": true)"),
       "x", "context"},
      {"PerformerLanguageModel", kPerformerLanguageModel,
       PerformerModel(R"("causal": true, "cross_attend": true, "no_projection": true)"), "x",
       "context"},
      {"EncoderDecoder", "linear_attention_transformer.EncoderDecoder",
       R"({"encoder": {"num_tokens": 30, "dim": 12, "depth": 1, "max_seq_len": 64, "heads": 3},
           "decoder": {"num_tokens": 30, "dim": 12, "depth": 2, "max_seq_len": 64, "heads": 3,
                       "causal": true}})",
       "y", "x"},
      {"FastDecoder", kFastDecoder,
       FastArguments(R"("self_attention_type": "causal-linear", "cross_attention_type": "linear",
                        "feature_map": {"name": "Favor", "n_dims": 10})"),
       "x", "memory", "memory_length_mask"},
  };
  return cases;
}

class SessionContext : public SessionFixture, public testing::WithParamInterface<ContextCase> {
 protected:
  const std::string& read() const { return GetParam().read; }
  const std::string& context() const { return GetParam().context; }
  const std::string& mask() const { return GetParam().mask; }

  bool TakesTokens(const std::string& input) {
    return model_->info().signature.FindInput(input)->kind == InputKind::kToken;
  }

  Tensor Rows(const std::string& input, int64_t length) {
    const Item item = TakesTokens(input) ? Tokens(length, kVocabulary) : Floats(length, 12);
    return item.inputs.at("x");
  }

  Item Whole(bool masked) {
    Item item;
    item.inputs[read()] = Rows(read(), Any(12, 40));
    const int64_t length = Any(2, 20);
    item.inputs[context()] = Rows(context(), length);
    if (masked) {
      auto [tensor, bytes] = Tensor::Allocate(DType::kBool, {length});
      for (int64_t i = 0; i < length; ++i) bytes[i] = std::byte(i % 3 == 1 ? 0 : 1);
      item.inputs[mask()] = tensor;
    }
    item.options.outputs = {"y"};
    return item;
  }

  // F32 is as exact as its largest numbers, of which Performer's are around 10.
  static double ToleranceOf(const Tensor& rows) {
    const double largest =
        LargestDifference(rows, Tensor::Allocate(DType::kF32, rows.shape()).first);
    return kTolerance * std::max(1.0, largest);
  }

  int64_t LengthOfRead(const Item& item) const { return item.inputs.at(read()).shape()[0]; }

  Item ChunkOf(const Item& whole, int64_t begin, int64_t end, const Session& session) const {
    Item chunk{.inputs = {},
               .options = whole.options,
               .chunk = std::make_shared<const SessionChunk>(),
               .session = session};
    if (begin == 0) chunk.inputs = whole.inputs;
    chunk.inputs[read()] = whole.inputs.at(read()).Rows(begin, end);
    return chunk;
  }

  std::unique_ptr<Model> model_ = Load(Directory(GetParam().architecture, GetParam().params));
};

INSTANTIATE_TEST_SUITE_P(Architectures, SessionContext, testing::ValuesIn(ContextCases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(SessionContext, ComesWithTheFirstChunkAndIsKept) {
  for (int round = 0; round < 8; ++round) {
    const Item item = Whole(/*masked=*/round % 2 == 1);
    const Tensor whole = Compute(*model_, {item})[0].at("y");
    const Session session = New(*model_);
    std::vector<Tensor> parts;
    int64_t row = 0;
    for (const int64_t length : Chunking(LengthOfRead(item))) {
      parts.push_back(Compute(*model_, {ChunkOf(item, row, row + length, session)}).at(0).at("y"));
      row += length;
    }
    EXPECT_LT(LargestDifference(Joined(parts), whole), ToleranceOf(whole)) << "round " << round;
    EXPECT_EQ(session->position(), LengthOfRead(item));
  }
}

TEST_P(SessionContext, OfEachSessionInABatchIsItsOwn) {
  std::vector<Item> items;
  std::vector<Tensor> expected;
  std::vector<Session> sessions;
  for (int i = 0; i < 3; ++i) {
    items.push_back(Whole(/*masked=*/false));
    expected.push_back(Compute(*model_, {items.back()})[0].at("y"));
    sessions.push_back(New(*model_));
  }
  for (int64_t row = 0; row < 12; row += 4) {
    std::vector<Item> chunks;
    for (size_t i = 0; i < items.size(); ++i) {
      chunks.push_back(ChunkOf(items[i], row, row + 4, sessions[i]));
    }
    const auto results = Compute(*model_, chunks);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_LT(LargestDifference(results[i].at("y"), expected[i].Rows(row, row + 4)),
                ToleranceOf(expected[i]));
    }
  }
}

TEST_P(SessionContext, IsNeitherMissedNorTakenTwice) {
  const Signature& signature = model_->info().signature;
  const Item item = Whole(/*masked=*/false);
  const Session session = New(*model_);
  Item first = ChunkOf(item, 0, 4, session);
  EXPECT_TRUE(ValidateChunk(signature, first).ok());
  Item without = first;
  without.inputs.erase(context());
  EXPECT_THAT(ValidateChunk(signature, without).message(),
              HasSubstr("\"" + context() + "\" is missing in the session's first chunk"));
  Compute(*model_, {first});
  EXPECT_TRUE(ValidateChunk(signature, ChunkOf(item, 4, 6, session)).ok());
  EXPECT_THAT(ValidateChunk(signature, first).message(), HasSubstr("has read 4 rows"));
  // A whole sequence needs its context.
  Item whole = item;
  whole.inputs.erase(context());
  EXPECT_FALSE(Validate(signature, whole).ok());
  whole.chunk = std::make_shared<const SessionChunk>();
  EXPECT_TRUE(Validate(signature, whole).ok());
}

}  // namespace
}  // namespace linserve
