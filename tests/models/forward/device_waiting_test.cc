#include <array>
#include <thread>

#include "models/forward/device_fixture.h"

namespace linserve {
namespace {

TEST_F(DeviceModelTest, PoolsItsFirstRowsWithoutWaitingForTheDevice) {
  const auto model = LoadOn("simulated:0", Init("transformers.BertModel",
                                                R"({"vocab_size": 30, "hidden_size": 32,
                                  "num_hidden_layers": 1, "num_attention_heads": 2,
                                  "intermediate_size": 48})"));
  Item item = Tokens(5, 30);
  item.options.outputs = {"pooler_output"};
  ExpectNoWaiting(*model, {&item, &item});
  EXPECT_THAT(Compute(*model, {item, item}, Padding::kZeros), testing::SizeIs(2));
}

TEST_F(DeviceModelTest, TakesUpAndSavesSessionsWhileTheDeviceComputes) {
  const auto model = LoadOn("simulated:0", Init("linserve.Encoder", R"({"num_tokens": 30, "dim": 64,
      "depth": 1, "heads": 2, "attention": "elu", "causal": true})"));
  const Padder padder(model->info().signature, Padding::kPacked);
  const auto chunk_of = [&](const std::shared_ptr<SessionState>& state) {
    Item chunk = Tokens(5, 30);
    chunk.session = state;
    return chunk;
  };
  const auto session = *model->info().sessions->New();
  Compute(*model, {chunk_of(session)});
  simulated_.stall(true);
  EXPECT_TRUE(model->Save(*session).ok());
  for (const auto& next : {session, *model->info().sessions->New()}) {
    const Item chunk = chunk_of(next);
    const auto begun = model->Start(padder.Pad({&chunk}, model->allocator()));
    EXPECT_TRUE(begun.ok()) << begun.status();
  }
}

// The state moves with the chunks, and only the loss of the device that has it is its end.
TEST_F(DeviceModelTest, LetsASessionGoOnAnywhere) {
  const std::string directory = Directory("linserve.Encoder", R"({"num_tokens": 30, "dim": 64,
      "depth": 1, "heads": 2, "attention": "elu", "causal": true})");
  const std::array models = {Load(directory), LoadOn("simulated:0", directory),
                             LoadOn("simulated:1", directory)};
  const std::vector<Item> wholes = {Tokens(25, 30), Tokens(25, 30)};
  const auto expected = Compute(*models[0], wholes);
  std::vector<std::shared_ptr<SessionState>> sessions;
  for (size_t i = 0; i < wholes.size(); ++i) {
    sessions.push_back(*models[0]->info().sessions->New());
  }
  const auto compute = [&](size_t model, int64_t row, int64_t count, size_t first, size_t last) {
    std::vector<Item> chunks;
    for (size_t i = first; i < last; ++i) {
      chunks.push_back({.inputs = {}, .options = {}, .chunk = {}, .session = sessions[i]});
      chunks.back().inputs["x"] = wholes[i].inputs.at("x").Rows(row, row + count);
    }
    const auto computed = Compute(*models[model], chunks);
    for (size_t i = first; i < last; ++i) {
      const auto& [name, rows] = *computed[i - first].begin();
      EXPECT_LT(LargestDifference(rows, expected[i].at(name).Rows(row, row + count)), 1e-4)
          << "rows from " << row << " on of sequence " << i << " on model " << model;
    }
  };
  compute(1, 0, 3, 0, 2);
  compute(0, 3, 4, 0, 2);  // both sessions at once, on the host
  simulated_.lose(0, true);
  EXPECT_FALSE(sessions[0]->lost());
  EXPECT_FALSE(sessions[1]->lost());
  simulated_.lose(0, false);
  compute(0, 7, 1, 0, 2);  // single rows
  compute(2, 8, 3, 0, 2);
  compute(1, 11, 2, 0, 2);
  compute(0, 13, 1, 0, 2);
  compute(2, 14, 5, 0, 1);
  compute(0, 19, 6, 0, 1);
  simulated_.lose(1, true);
  EXPECT_FALSE(sessions[0]->lost());
  EXPECT_TRUE(models[0]->Save(*sessions[0]).ok());
}

// A text is generated token by token.
TEST_F(DeviceModelTest, ComputesASessionsNextTokenWithoutWaitingForTheDevice) {
  for (const auto& [architecture, params] : std::vector<std::pair<std::string, std::string>>{
           {"linserve.Encoder", R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2,
                                    "attention": "elu", "causal": true})"},
           {"linear_attention_transformer.LinearAttentionTransformerLM",
            R"({"num_tokens": 30, "dim": 64, "depth": 1, "heads": 2, "dim_head": 32,
                "max_seq_len": 64, "causal": true, "blindspot_size": 1})"}}) {
    SCOPED_TRACE(architecture);
    const auto model = LoadOn("simulated:0", Init(architecture, params), "bf16");
    const auto session = *model->info().sessions->New();
    Item chunk = Tokens(5, 30);
    chunk.session = session;
    Compute(*model, {chunk});
    Item next = Tokens(1, 30);
    next.session = session;
    ExpectNoWaiting(*model, {&next});
  }
}

// A GPU's fault is found by whoever asks it next. Whatever is freed then, on any thread, must not
// ask it again: LibTorch ends the process where that fails.
TEST_F(DeviceModelTest, LeavesTheProcessAloneThatHasLostIt) {
  auto model = LoadOn("simulated:1", Init("linformer.LinformerLM",
                                          R"({"num_tokens": 30, "dim": 16, "seq_len": 32,
                                              "depth": 2, "k": 8, "heads": 4})"));
  const Padder padder(model->info().signature, Padding::kPacked);
  const Item item = Tokens(5, 30);
  const auto start = [&] { return model->Start(padder.Pad({&item}, model->allocator())); };
  std::vector<TensorMap> results = Compute(*model, {item, item});
  auto complete = start();
  ASSERT_TRUE(complete.ok());
  while (!*(*complete)->Advance()) {
  }
  auto begun = start();
  ASSERT_TRUE(begun.ok());
  simulated_.lose(1, true);
  EXPECT_EQ((*begun)->Advance().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ((*complete)->TakeResults().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(model->Start(padder.Pad({&item})).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(model->lost());
  // A caller reads slowly.
  std::thread([&] { results.clear(); }).join();
  begun->reset();
  complete->reset();
  model.reset();
}

}  // namespace
}  // namespace linserve
