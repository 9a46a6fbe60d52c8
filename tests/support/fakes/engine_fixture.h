#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "support/fakes/fake_clock.h"
#include "support/fakes/fake_model.h"
#include "support/fakes/recording_sink.h"
#include "support/test_files.h"
#include "support/wait_until.h"
#include "telemetry/scraped.h"

namespace linserve {

// Runs an engine over a fake model. It is not warmed up unless a test asks for it.
class EngineTest : public testing::Test {
 protected:
  EngineTest() { options_.warmup = false; }
  ~EngineTest() override { control_->LetGo(); }

  void Start(Clock& clock = SteadyClock()) {
    auto engine = Engine::Start(options_, FakeModelFactory(control_), model_, clock);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  // Makes a request of one sequence for each length, answered to `sink`.
  static Request Of(std::shared_ptr<ResultSink> sink, const std::vector<int64_t>& lengths,
                    TimePoint deadline = TimePoint::max()) {
    Request request{.id = "r", .items = {}, .deadline = deadline, .sink = std::move(sink)};
    for (const int64_t length : lengths) request.items.emplace_back(FakeItem(length));
    return request;
  }

  absl::Status Submit(const std::shared_ptr<RecordingSink>& sink,
                      const std::vector<int64_t>& lengths, TimePoint deadline = TimePoint::max()) {
    Request request = Of(sink, lengths, deadline);
    return engine_->Submit(request);
  }

  // Submits a sequence that a forward pass then holds on to.
  void Occupy() {
    control_->Hold();
    EXPECT_TRUE(Submit(occupant_, {1}).ok());
    control_->AwaitHeld(1);
  }

  // Loses the devices of an engine for good. Models that are loaded later are of another control.
  void LoseDevices(Engine& engine) {
    control_->fault = [](const Batch&) { return Fault::kDeviceLost; };
    control_->load = [] { return absl::UnavailableError("no such device"); };
    Request request = Of(sink_, {1});
    EXPECT_TRUE(engine.Submit(request).ok());
    EXPECT_TRUE(WaitUntil([&] { return !engine.ready(); }));
    control_ = std::make_shared<FakeModelControl>();
  }

  static std::vector<float> Rows(const RecordingSink::Result& result) {
    if (!result.ok()) return {};
    const Tensor& y = result->outputs.at("y");
    return {y.data<float>(), y.data<float>() + y.elements()};
  }

  double SplitsFor(const std::string& reason) const {
    return Scraped(metrics_.Scrape())[R"(linserve_batch_splits_total{model="m",reason=")" + reason +
                                      R"(",version="1"})"];
  }

  double Metric(const std::string& name, const std::string& label = "") const {
    return Scraped(
        metrics_.Scrape())["linserve_" + name + R"({model="m",)" + label + R"(version="1"})"];
  }

  FakeClock clock_;
  Metrics metrics_{{}};
  ModelMetrics& model_ = metrics_.ForModel("m", 1);
  EngineOptions options_;
  std::shared_ptr<FakeModelControl> control_ = std::make_shared<FakeModelControl>();
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
  std::shared_ptr<RecordingSink> occupant_ = std::make_shared<RecordingSink>();
  std::unique_ptr<Engine> engine_;
};

}  // namespace linserve
