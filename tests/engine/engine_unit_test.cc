#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using testing::ElementsAre;

// Serves a model that mixes the sequences of a request.
class EngineUnitTest : public EngineTest {
 protected:
  EngineUnitTest() { control_->request_is_unit = true; }
};

TEST_F(EngineUnitTest, ComputesEachRequestInABatchOfItsOwnWhateverTheBudget) {
  options_.policy = {.max_tokens = 4, .max_sequences = 2};
  Start();
  Occupy();
  const auto first = std::make_shared<RecordingSink>();
  const auto second = std::make_shared<RecordingSink>();
  ASSERT_TRUE(Submit(first, {3, 5, 7, 9}).ok());
  ASSERT_TRUE(Submit(second, {3, 3}).ok());
  control_->LetGo();
  first->AwaitDeliveries(4);
  second->AwaitDeliveries(2);
  EXPECT_THAT(control_->batch_sizes(), ElementsAre(1, 4, 2));
  EXPECT_EQ(Rows(first->Await(2)), FakeResult(7));
}

TEST_F(EngineUnitTest, PadsARequestToOneLengthWhereItsSequencesDiffer) {
  options_.padding = Padding::kBucket;
  Start();
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(Submit(sink, {3, 40}).ok());
  EXPECT_EQ(Rows(sink->Await(0)), FakeResult(3));
  EXPECT_EQ(Rows(sink->Await(1)), FakeResult(40));
  EXPECT_THAT(control_->batch_sizes(), ElementsAre(2));
}

TEST_F(EngineUnitTest, RefusesAllSequencesOfARequestThatHasAFaultyOne) {
  Start();
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(Submit(sink, {3, kFakeLongest + 1, 4}).ok());
  sink->AwaitDeliveries(3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsInvalidArgument(sink->Await(i).status())) << sink->Await(i).status();
  }
  EXPECT_NE(sink->Await(0).status().message().find("another sequence of the request"),
            absl::string_view::npos);
  EXPECT_TRUE(control_->batch_sizes().empty());
}

}  // namespace
}  // namespace linserve
