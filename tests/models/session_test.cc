#include "models/fast_transformers/fixture.h"
#include "models/performer_pytorch/fixture.h"
#include "models/session_fixture.h"

namespace linserve {
namespace {

// This is one or two steps of bf16 in rows of up to 16, between which the models' largest outputs
// lie.
constexpr double kBf16Tolerance = 0.1;

struct SessionCase {
  std::string name;
  std::string architecture;
  std::string params;
  bool tokens = false;
  std::string wrapper = "null";
};

void PrintTo(const SessionCase& test, std::ostream* out) { *out << test.name; }

constexpr const char* kEncoder = "linserve.Encoder";

std::string EncoderParams(const std::string& more) {
  return R"({"dim": 12, "depth": 2, "heads": 3, "causal": true, )" + more + "}";
}

// The last one counts where a key is given twice.
std::string LatParams(const std::string& more) {
  std::string params = R"({"dim": 12, "depth": 2, "max_seq_len": 208, "heads": 3,
                           "local_attn_window_size": 8, "causal": true)";
  if (!more.empty()) params += ", " + more;
  return params + "}";
}

std::string LatModelParams(const std::string& more) {
  const std::string own = R"("num_tokens": 30, "dim_head": 4)";
  return LatParams(more.empty() ? own : own + ", " + more);
}

const std::vector<SessionCase>& SessionCases() {
  static const std::vector<SessionCase> cases = {
      {"Elu", kEncoder, EncoderParams(R"("attention": "elu")")},
      {"EluWithoutDenominator", kEncoder,
       EncoderParams(R"("attention": "elu", "normalize": false, "positions": "sinusoidal")")},
      {"EluRotary", kEncoder,
       EncoderParams(R"("attention": "elu", "positions": "rotary", "num_tokens": 30)"), true},
      {"Taylor", kEncoder, EncoderParams(R"("attention": "taylor", "positions": "rotary")")},
      {"TaylorLearned", kEncoder,
       EncoderParams(R"("attention": "taylor", "positions": "learned", "max_seq_len": 200,
                        "num_tokens": 30, "dim_head": 6)"),
       true},
      {"Efficient", kEncoder, EncoderParams(R"("attention": "efficient")")},
      {"EfficientSinusoidal", kEncoder,
       EncoderParams(R"("attention": "efficient", "positions": "sinusoidal", "num_tokens": 30)"),
       true},
      {"Lat", kLatStack, LatParams("")},
      {"LatReversible", kLatStack, LatParams(R"("reversible": true, "depth": 3, "dim_head": 5)")},
      {"LatBlindSpot", kLatStack, LatParams(R"("blindspot_size": 6)")},
      {"LatBlindSpotOfTwo", kLatStack, LatParams(R"("blindspot_size": 2, "depth": 1)")},
      {"LatLocal", kLatStack, LatParams(R"("n_local_attn_heads": [1, 3])")},
      {"LatAllLocal", kLatStack, LatParams(R"("n_local_attn_heads": 3, "depth": 3)")},
      {"LatWindowOfOne", kLatStack,
       LatParams(R"("n_local_attn_heads": 2, "local_attn_window_size": 1)")},
      {"LatShift", kLatStack, LatParams(R"("shift_tokens": true)")},
      {"LatMemory", kLatStack, LatParams(R"("pkm_layers": 2, "shift_tokens": true)")},
      {"LatAll", kLatStack,
       LatParams(R"("shift_tokens": true, "n_local_attn_heads": 1, "blindspot_size": 3,
                    "local_attn_window_size": 13, "reversible": true)")},
      {"LatPadRight", kLatStack, LatParams(R"("n_local_attn_heads": 1, "blindspot_size": 6)"),
       false, kPadRight},
      {"LatAxialPositions", kLatLanguageModel, LatModelParams(""), true},
      {"LatLearned", kLatLanguageModel,
       LatModelParams(R"("use_axial_pos_emb": false, "emb_dim": 8, "n_local_attn_heads": 2)"),
       true},
      {"LatRotary", kLatLanguageModel,
       LatModelParams(R"("use_rotary_emb": true, "n_local_attn_heads": 1)"), true},
      {"PerformerGeneralized", kPerformer,
       PerformerStack(R"("causal": true, "generalized_attention": true, "nb_features": 16)")},
      {"PerformerNoProjection", kPerformer,
       PerformerStack(R"("causal": true, "no_projection": true, "shift_tokens": true,
                         "local_attn_heads": [0, 2])")},
      {"PerformerLocal", kPerformer,
       PerformerStack(R"("causal": true, "local_attn_heads": 3, "use_scalenorm": true)")},
      {"PerformerRotary", kPerformerLanguageModel,
       PerformerModel(R"("causal": true, "generalized_attention": true, "local_attn_heads": 1)"),
       true},
      {"PerformerAxial", kPerformerLanguageModel,
       PerformerModel(R"("causal": true, "no_projection": true, "rotary_position_emb": false,
                         "axial_position_emb": true, "axial_position_shape": [6, 5, 7])"),
       true},
      {"LatModelOfAll", kLatLanguageModel,
       LatModelParams(R"("use_rotary_emb": true, "n_local_attn_heads": [2, 0], "reversible": true,
                         "shift_tokens": true, "blindspot_size": 4, "return_embeddings": true)"),
       true, kPadRight},
      {"FastElu", kFastEncoder, FastArguments(R"("attention_type": "causal-linear")")},
      {"FastFavor", kFastEncoder,
       FastArguments(R"("attention_type": "causal-linear", "activation": "gelu",
                        "feature_map": {"name": "Favor", "n_dims": 10})")},
      {"FastGeneralized", kFastEncoder,
       FastArguments(R"("attention_type": "causal-linear", "query_dimensions": 6,
                        "feature_map": "GeneralizedRandomFeatures", "final_normalization": false)")},
  };
  return cases;
}

class SessionTest : public SessionFixture, public testing::WithParamInterface<SessionCase> {
 protected:
  std::string DirectoryOfCase() {
    const SessionCase& test = GetParam();
    return Directory(test.architecture, test.params, test.wrapper);
  }

  Item RandomItem(int64_t length) {
    Item item = GetParam().tokens ? Tokens(length, kVocabulary) : Floats(length, 12);
    item.options.outputs = {"y"};
    return item;
  }
};

INSTANTIATE_TEST_SUITE_P(Architectures, SessionTest, testing::ValuesIn(SessionCases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(SessionTest, AnyChunkingGivesTheRowsOfTheWholeSequence) {
  const auto model = Load(DirectoryOfCase());
  for (int round = 0; round < 12; ++round) {
    const Item item = RandomItem(Any(1, 40));
    const Tensor whole = Compute(*model, {item})[0].at("y");
    const auto session = New(*model);
    const Tensor fed = Feed(*model, item, Chunking(LengthOfX(item)), session);
    EXPECT_LT(LargestDifference(fed, whole), kTolerance) << "round " << round;
    EXPECT_EQ(session->position(), LengthOfX(item));
  }
}

TEST_P(SessionTest, ALongSequenceIsFedInChunksOfAnyLength) {
  const auto model = Load(DirectoryOfCase());
  const Item item = RandomItem(200);
  const Tensor whole = Compute(*model, {item})[0].at("y");
  // Chunks are added up in another order than a whole sequence is, and the weights of these models
  // magnify what is rounded.
  for (const auto& chunks : {std::vector<int64_t>{150, 50}, {1, 199}, {63, 65, 72}}) {
    EXPECT_LT(LargestDifference(Feed(*model, item, chunks, New(*model)), whole), 3 * kTolerance);
  }
}

TEST_P(SessionTest, AnyChunkingInBf16IsNearTheWholeSequence) {
  SKIP_WITHOUT_TYPE("bf16");
  const auto model = Load(DirectoryOfCase(), {.dtype = "bf16"});
  for (int round = 0; round < 4; ++round) {
    const Item item = RandomItem(Any(1, 40));
    const Tensor whole = Compute(*model, {item})[0].at("y");
    const Tensor fed = Feed(*model, item, Chunking(LengthOfX(item)), New(*model));
    EXPECT_LT(LargestDifference(fed, whole), kBf16Tolerance) << "round " << round;
  }
}

TEST_P(SessionTest, SessionsInOneBatchGiveWhatEachGivesAlone) {
  const auto model = Load(DirectoryOfCase());
  for (int round = 0; round < 6; ++round) {
    struct Fed {
      Item whole;
      Session session;
      Tensor expected;
      int64_t read = 0;
    };
    std::vector<Fed> all;
    for (int64_t i = Any(2, 5); i > 0; --i) {
      const Item item = RandomItem(Any(20, 40));
      all.push_back({item, New(*model), Compute(*model, {item})[0].at("y")});
    }
    const bool one_row_each = round % 2 == 0;
    // Each begins where another one is in the middle.
    for (Fed& fed : all) {
      fed.read = Any(1, 15);
      Feed(*model, fed.whole, {fed.read}, fed.session);
    }
    for (int step = 0; step < 4; ++step) {
      std::vector<Item> chunks;
      for (const Fed& fed : all) {
        const int64_t length =
            one_row_each ? 1 : std::min<int64_t>(Any(1, 9), LengthOfX(fed.whole) - fed.read);
        if (length < 1) continue;
        chunks.push_back(Chunk(fed.whole, fed.read, fed.read + length, fed.session));
      }
      if (chunks.empty()) break;
      const auto results = Compute(*model, chunks);
      size_t result = 0;
      for (Fed& fed : all) {
        if (result == chunks.size() || chunks[result].session != fed.session) continue;
        const int64_t end = fed.session->position();
        EXPECT_LT(LargestDifference(results[result++].at("y"), fed.expected.Rows(fed.read, end)),
                  kTolerance);
        fed.read = end;
      }
    }
  }
}

TEST_P(SessionTest, TheStateHasAsManyBytesAtAnyPositionAsInspectSays) {
  const std::string directory = DirectoryOfCase();
  const auto model = Load(directory);
  const auto report = InspectModel(directory);
  ASSERT_TRUE(report.ok()) << report.status();
  const auto session = New(*model);
  EXPECT_GT(session->bytes(), 0);
  EXPECT_EQ(report->info.session_bytes, session->bytes());
  EXPECT_EQ(model->info().session_bytes, session->bytes());
  const int64_t bytes = session->bytes();
  Feed(*model, RandomItem(30), {1, 20, 9}, session);
  EXPECT_EQ(session->bytes(), bytes);
}

TEST_P(SessionTest, ASavedSessionContinuesInAnotherReplicaAsIfItHadNeverMoved) {
  const std::string directory = DirectoryOfCase();
  const auto model = Load(directory);
  const auto other = Load(directory);
  const Item item = RandomItem(35);
  const auto session = New(*model);
  Feed(*model, Chunk(item, 0, 22, nullptr), {5, 17}, session);
  const auto blob = model->Save(*session);
  ASSERT_TRUE(blob.ok()) << blob.status();
  const auto restored = other->info().sessions->Restore(*blob);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ((*restored)->position(), 22);
  const Item rest = Chunk(item, 22, 35, nullptr);
  const Tensor moved = Feed(*other, rest, {1, 12}, *restored);
  EXPECT_EQ(LargestDifference(moved, Feed(*model, rest, {1, 12}, session)), 0);
}

TEST_P(SessionTest, APassThatIsGivenUpLeavesItsSessionsAsTheyWere) {
  const auto model = Load(DirectoryOfCase());
  const Item item = RandomItem(30);
  const auto session = New(*model);
  Feed(*model, item, {11}, session);
  const std::string before = *model->Save(*session);
  const Item chunk = Chunk(item, 11, 20, session);
  const Padder padder(model->info().signature, Padding::kPacked);
  {
    auto forward = model->Start(padder.Pad({&chunk}));
    ASSERT_TRUE(forward.ok()) << forward.status();
    ASSERT_TRUE((*forward)->Advance().ok());
  }
  EXPECT_EQ(*model->Save(*session), before);
  const Tensor whole = Compute(*model, {item})[0].at("y");
  EXPECT_LT(LargestDifference(Feed(*model, Chunk(item, 11, 30, nullptr), {9, 10}, session),
                              whole.Rows(11, 30)),
            kTolerance);
}

TEST_P(SessionTest, AStepThatIsGivenUpOrForgottenLeavesNoTrace) {
  const auto model = Load(DirectoryOfCase());
  const Item item = RandomItem(30);
  const Item other = RandomItem(30);
  const Padder padder(model->info().signature, Padding::kPacked);
  const auto session = New(*model);
  const auto neighbour = New(*model);
  Feed(*model, item, {5}, session);
  Feed(*model, other, {5}, neighbour);
  const Tensor whole = Compute(*model, {item})[0].at("y");
  for (int64_t row = 5; row < 30; ++row) {
    // These are rows of another sequence, computed to the end or not.
    const Item lost[] = {Chunk(other, row, row + 1, session),
                         Chunk(other, row, row + 1, neighbour)};
    {
      auto forward = model->Start(padder.Pad({&lost[0], &lost[1]}));
      ASSERT_TRUE(forward.ok()) << forward.status();
      (*forward)->Forget(0);
      while (!*(*forward)->Advance() && row % 2 == 0) {
      }
      if (row % 2 == 0) {
        ASSERT_TRUE((*forward)->TakeResults().ok());
      }
    }
    EXPECT_EQ(session->position(), row);
    const auto saved = model->Save(*session);
    ASSERT_TRUE(saved.ok()) << saved.status();
    const auto restored = model->info().sessions->Restore(*saved);
    ASSERT_TRUE(restored.ok()) << restored.status();
    for (const auto& state : {session, *restored}) {
      const Item chunk = Chunk(item, row, row + 1, state);
      EXPECT_LT(LargestDifference(Compute(*model, {chunk})[0].at("y"), whole.Rows(row, row + 1)),
                kTolerance)
          << "row " << row;
    }
  }
}

TEST_P(SessionTest, ASequenceThatIsForgottenLeavesItsSessionAndNotItsNeighbours) {
  const auto model = Load(DirectoryOfCase());
  const Item item = RandomItem(30);
  const auto left = New(*model);
  const auto kept = New(*model);
  const std::string before = *model->Save(*left);
  const Item chunks[] = {Chunk(item, 0, 4, left), Chunk(item, 0, 6, kept)};
  auto forward =
      model->Start(Padder(model->info().signature, Padding::kPacked).Pad({&chunks[0], &chunks[1]}));
  ASSERT_TRUE(forward.ok()) << forward.status();
  EXPECT_FALSE((*forward)->Forget(0));
  while (!*(*forward)->Advance()) {
  }
  ASSERT_TRUE((*forward)->TakeResults().ok());
  EXPECT_EQ(*model->Save(*left), before);
  EXPECT_EQ(kept->position(), 6);
}

}  // namespace
}  // namespace linserve
