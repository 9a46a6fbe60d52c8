#include "telemetry/metrics.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <thread>
#include <vector>

#include "telemetry/scraped.h"

namespace linserve {
namespace {

using namespace std::chrono_literals;

class MetricsTest : public ::testing::Test {
 protected:
  Scraped Scrape() const { return Scraped(metrics_.Scrape()); }

  Metrics metrics_{{.version = "0.1", .commit = "abc", .torch = "2.11"}};
  ModelMetrics& model_ = metrics_.ForModel("m", 3);
  RpcMetrics& rpc_ = metrics_.ForRpc("Embed");
};

// Makes three sequences of five real rows in all, each padded to four.
Batch PaddedBatch() {
  Batch batch;
  batch.padding = Padding::kFixed;
  batch.options.resize(3);
  batch.axes['n'] = {.starts = {0, 4, 8}, .lengths = {1, 2, 2}, .rows = 12, .padded_length = 4};
  batch.rows = 12;
  batch.padding_rows = 7;
  return batch;
}

TEST_F(MetricsTest, CountsABatchOnceByItsClosingReason) {
  model_.BatchClosed(PaddedBatch(), CloseReason::kDelay);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_batches_total{model="m",reason="delay",version="3"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_batches_total{model="m",reason="full",version="3"})"], 0);
}

TEST_F(MetricsTest, SeparatesTheRowsOfABatchIntoTokensAndPadding) {
  model_.BatchClosed(PaddedBatch(), CloseReason::kFull);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_sequences_total{model="m",version="3"})"], 3);
  EXPECT_EQ(scraped[R"(linserve_tokens_total{model="m",version="3"})"], 5);
  EXPECT_EQ(scraped[R"(linserve_padded_tokens_total{mode="fixed",model="m",version="3"})"], 7);
  EXPECT_EQ(scraped[R"(linserve_padded_tokens_total{mode="zeros",model="m",version="3"})"], 0);
  EXPECT_EQ(scraped[R"(linserve_batch_sequences_sum{model="m",version="3"})"], 3);
  EXPECT_EQ(scraped[R"(linserve_batch_tokens_sum{model="m",version="3"})"], 12);
  EXPECT_EQ(scraped[R"(linserve_batch_tokens_bucket{model="m",version="3",le="8"})"], 0);
  EXPECT_EQ(scraped[R"(linserve_batch_tokens_bucket{model="m",version="3",le="16"})"], 1);
}

TEST_F(MetricsTest, KeepsExactlyOneStateOfAModelAtOne) {
  model_.SetState(ModelState::kLoading);
  model_.SetState(ModelState::kReady);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_model_state{model="m",state="LOADING",version="3"})"], 0);
  EXPECT_EQ(scraped[R"(linserve_model_state{model="m",state="READY",version="3"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_model_state{model="m",state="DRAINING",version="3"})"], 0);
}

TEST_F(MetricsTest, ReportsWhatLoadingAModelTookAndOccupies) {
  model_.SetLoaded(1500ms, 250ms, "cuda:0", 1 << 20);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_model_load_seconds{model="m",version="3"})"], 1.5);
  EXPECT_EQ(scraped[R"(linserve_model_warmup_seconds{model="m",version="3"})"], 0.25);
  EXPECT_EQ(scraped[R"(linserve_model_bytes{device="cuda:0",model="m",version="3"})"], 1 << 20);
}

TEST_F(MetricsTest, ShowsWhatWaitsInTheQueueOfAModelAndInThatOfTheOneThatItReplaces) {
  const QueueState full{9, 9, 9, 9, 100ms};
  const QueueState replaced{0, 1, 10, 100, 25ms};
  model_.QueueChanged({}, full);
  model_.QueueChanged({}, replaced);
  model_.QueueChanged(full, {1, 1, 20, 300, 100ms});

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_queue_requests{model="m",version="3"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_queue_sequences{model="m",version="3"})"], 2);
  EXPECT_EQ(scraped[R"(linserve_queue_tokens{model="m",version="3"})"], 30);
  EXPECT_EQ(scraped[R"(linserve_queue_bytes{model="m",version="3"})"], 400);
  EXPECT_EQ(scraped[R"(linserve_queue_delay_estimate_seconds{model="m",version="3"})"], 0.125);
}

TEST_F(MetricsTest, CountsRefusalsAndAbandonedSequencesByTheirCause) {
  model_.Arrived(130);
  model_.Accepted(100);
  model_.Rejected(RejectReason::kDraining);
  model_.Abandoned(AbandonStage::kBatch);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_arrived_tokens_total{model="m",version="3"})"], 130);
  EXPECT_EQ(scraped[R"(linserve_sequence_length_sum{model="m",version="3"})"], 100);
  EXPECT_EQ(scraped[R"(linserve_sequences_total{model="m",version="3"})"], 0);
  EXPECT_EQ(scraped[R"(linserve_rejected_total{model="m",reason="draining",version="3"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_rejected_total{model="m",reason="queue",version="3"})"], 0);
  EXPECT_EQ(scraped[R"(linserve_abandoned_total{model="m",stage="batch",version="3"})"], 1);
}

TEST_F(MetricsTest, MeasuresEachStageOfASequenceInSeconds) {
  model_.TokenizeTime(250us);
  model_.QueueTime(1ms);
  model_.BatchFormTime(500us);
  model_.ComputeTime(ComputePhase::kForward, 2s);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_tokenize_seconds_sum{model="m",version="3"})"], 0.00025);
  EXPECT_EQ(scraped[R"(linserve_queue_duration_seconds_sum{model="m",version="3"})"], 0.001);
  EXPECT_EQ(scraped[R"(linserve_batch_form_duration_seconds_sum{model="m",version="3"})"], 0.0005);
  const std::string compute = "linserve_compute_duration_seconds_";
  EXPECT_EQ(scraped[compute + R"(sum{model="m",phase="forward",version="3"})"], 2);
  EXPECT_EQ(scraped[compute + R"(count{model="m",phase="copy_in",version="3"})"], 0);
}

TEST_F(MetricsTest, HasTimeBucketsFromATenthOfAMillisecondToAMinuteWithRoundOnes) {
  rpc_.Finished(0, 90s);
  const Scraped scraped = Scrape();
  for (const char* bound :
       {"0.0001", "0.00016", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "60"}) {
    const std::string labels = R"({model="",rpc="Embed",le=")" + std::string(bound) + R"("})";
    EXPECT_EQ(scraped["linserve_request_duration_seconds_bucket" + labels], 0) << bound;
  }
}

TEST_F(MetricsTest, HasNoHistogramsOfCallsThatNobodyMakes) {
  const auto histograms = [this] {
    const Scraped scraped = Scrape();
    return std::count_if(scraped.samples.begin(), scraped.samples.end(), [](const auto& sample) {
      const std::string& series = sample.first;
      return series.find("_count{") != std::string::npos &&
             series.find(R"(rpc="Embed")") != std::string::npos;
    });
  };
  EXPECT_EQ(histograms(), 0);
  rpc_.Message(Direction::kReceived, 1);
  rpc_.FirstResponse(1ms);
  EXPECT_EQ(histograms(), 2);
  EXPECT_EQ(Scrape()[R"(linserve_requests_total{code="OK",model="",rpc="Embed"})"], 0);
}

TEST_F(MetricsTest, HasTheFiguresOfAModelByTritonsNames) {
  Timing timing;
  timing.queue = 7us;
  timing.batch = 2us;
  timing.compute = 100us;
  timing.copy_in = 3us;
  timing.copy_out = 5us;
  timing.batch_sequences = 4;
  model_.statistics().Executed(timing);
  model_.statistics().Succeeded(timing, 4, 120us);
  model_.statistics().Failed(1us);
  model_.statistics().LookedUp(false, 1us);
  QueueState queue;
  queue.requests = 9;
  model_.QueueChanged({}, queue);

  const Scraped scraped = Scrape();
  const auto value = [&](const std::string& name) {
    return scraped["nv_" + name + R"({model="m",version="3"})"];
  };
  EXPECT_EQ(value("inference_request_success"), 1);
  EXPECT_EQ(scraped[R"(nv_inference_request_failure{model="m",version="3",reason="OTHER"})"], 1);
  EXPECT_EQ(value("inference_count"), 4);  // of the pass
  EXPECT_EQ(value("inference_exec_count"), 1);
  EXPECT_EQ(value("inference_request_duration_us"), 120);
  EXPECT_EQ(value("inference_queue_duration_us"), 7);
  EXPECT_EQ(value("inference_compute_input_duration_us"), 5);
  EXPECT_EQ(value("inference_compute_infer_duration_us"), 92);
  EXPECT_EQ(value("inference_compute_output_duration_us"), 5);
  EXPECT_EQ(value("inference_pending_request_count"), 9);
  EXPECT_EQ(value("cache_num_hits_per_model"), 0);
  EXPECT_EQ(value("cache_num_misses_per_model"), 1);
}

TEST_F(MetricsTest, FollowsARequestFromItsStartToItsCode) {
  rpc_.Started();
  rpc_.Started();
  rpc_.Message(Direction::kReceived, 1000);
  rpc_.FirstResponse(1ms);
  rpc_.Sent(2ms);
  rpc_.Finished(3, 4ms);
  rpc_.Started();
  rpc_.Finished(0, 8ms, "m");

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_in_flight_requests{rpc="Embed"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_requests_total{code="INVALID_ARGUMENT",model="",rpc="Embed"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_requests_total{code="OK",model="m",rpc="Embed"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_request_duration_seconds_sum{model="m",rpc="Embed"})"], 0.008);
  EXPECT_EQ(scraped[R"(linserve_first_response_seconds_sum{rpc="Embed"})"], 0.001);
  EXPECT_EQ(scraped[R"(linserve_send_duration_seconds_sum{rpc="Embed"})"], 0.002);
  const std::string bytes = "linserve_grpc_message_bytes_sum";
  EXPECT_EQ(scraped[bytes + R"({direction="received",rpc="Embed"})"], 1000);
  EXPECT_FALSE(scraped.samples.contains(bytes + R"({direction="sent",rpc="Embed"})"));
}

TEST_F(MetricsTest, CountsTheRequestsOfEachModel) {
  rpc_.Finished(0, 1ms, "m");
  rpc_.Finished(0, 2ms, "other");
  rpc_.Finished(8, 3ms, "m");
  rpc_.Finished(5, 4ms);

  const Scraped scraped = Scrape();
  const std::string requests = "linserve_requests_total";
  EXPECT_EQ(scraped[requests + R"({code="OK",model="m",rpc="Embed"})"], 1);
  EXPECT_EQ(scraped[requests + R"({code="OK",model="other",rpc="Embed"})"], 1);
  EXPECT_EQ(scraped[requests + R"({code="RESOURCE_EXHAUSTED",model="m",rpc="Embed"})"], 1);
  EXPECT_EQ(scraped[requests + R"({code="NOT_FOUND",model="",rpc="Embed"})"], 1);
  const std::string count = "linserve_request_duration_seconds_count";
  EXPECT_EQ(scraped[count + R"({model="m",rpc="Embed"})"], 1);
}

TEST_F(MetricsTest, CountsTheTokensOfEachCallerAndOfAThousandAtMost) {
  for (int caller = 0; caller < 1500; ++caller) metrics_.Computed(std::to_string(caller), 3);
  metrics_.Computed("0", 4);
  metrics_.Computed("1499", 5);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_caller_tokens_total{caller="0"})"], 7);
  EXPECT_EQ(scraped[R"(linserve_caller_tokens_total{caller="other"})"], 3 * 500 + 5);
}

TEST_F(MetricsTest, CountsWhatCouldNotBeReadAgain) {
  metrics_.ReloadFailed(Reload::kTokens);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_reload_failures_total{what="tokens"})"], 1);
  EXPECT_EQ(scraped[R"(linserve_reload_failures_total{what="certificate"})"], 0);
  EXPECT_EQ(scraped[R"(linserve_reload_failures_total{what="models"})"], 0);
}

TEST_F(MetricsTest, SaysWhenTheCertificateExpiresWhereThereIsOne) {
  EXPECT_EQ(Scrape().families.count("linserve_certificate_remaining_seconds"), 0U);
  metrics_.SetCertificateExpiry(std::chrono::system_clock::now() + 2h);
  EXPECT_NEAR(Scrape()["linserve_certificate_remaining_seconds"], 7200, 60);
  metrics_.SetCertificateExpiry(std::chrono::system_clock::now() - 1h);
  EXPECT_NEAR(Scrape()["linserve_certificate_remaining_seconds"], -3600, 60);
}

TEST_F(MetricsTest, CountsACodeThatGrpcDoesNotHaveAsUnknown) {
  rpc_.Finished(-1, 1ms);
  rpc_.Finished(17, 1ms);
  rpc_.Finished(16, 1ms);

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_requests_total{code="UNKNOWN",model="",rpc="Embed"})"], 2);
  EXPECT_EQ(scraped[R"(linserve_requests_total{code="UNAUTHENTICATED",model="",rpc="Embed"})"], 1);
}

TEST_F(MetricsTest, CountsOpenStreams) {
  rpc_.StreamOpened();
  rpc_.StreamOpened();
  rpc_.StreamClosed();

  EXPECT_EQ(Scrape()[R"(linserve_open_streams{rpc="Embed"})"], 1);
}

TEST_F(MetricsTest, GivesTheSameHandlesForTheSameModelAndRpc) {
  EXPECT_EQ(&metrics_.ForModel("m", 3), &model_);
  EXPECT_NE(&metrics_.ForModel("m", 4), &model_);
  EXPECT_EQ(&metrics_.ForRpc("Embed"), &rpc_);
  EXPECT_NE(&metrics_.ForRpc("EmbedStream"), &rpc_);
}

TEST_F(MetricsTest, SaysWhatIsRunning) {
  EXPECT_EQ(Scrape()[R"(linserve_build_info{commit="abc",torch="2.11",version="0.1"})"], 1);
}

TEST_F(MetricsTest, ReadsTheProcessFiguresWhenItIsScraped) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Scraped before = Scrape();
  std::FILE* file = std::fopen("/dev/null", "r");
  const Scraped after = Scrape();
  std::fclose(file);

  EXPECT_EQ(after["process_open_fds"], before["process_open_fds"] + 1);
  EXPECT_GE(before["process_max_fds"], before["process_open_fds"]);
  EXPECT_GE(before["process_threads"], 1);
  EXPECT_GT(before["process_resident_memory_bytes"], 0);
  EXPECT_GT(before["linserve_memory_limit_bytes"], before["process_resident_memory_bytes"]);
  EXPECT_GE(before["process_virtual_memory_bytes"], before["process_resident_memory_bytes"]);
  EXPECT_GE(after["process_cpu_seconds_total"], before["process_cpu_seconds_total"]);
  // The kernel gives the boot time in whole seconds.
  EXPECT_NEAR(before["process_start_time_seconds"], std::chrono::duration<double>(now).count(),
              300);
}

TEST_F(MetricsTest, LosesNothingWhenManyThreadsCountAndScrape) {
  constexpr int kThreads = 4;
  constexpr int kEvents = 500;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      for (int event = 0; event < kEvents; ++event) {
        ModelMetrics& model = metrics_.ForModel("shared", 1);
        model.BatchClosed(PaddedBatch(), CloseReason::kFull);
        model.QueueTime(1us);
        model.SetState(event % 2 == 0 ? ModelState::kReady : ModelState::kDraining);
        RpcMetrics& rpc = metrics_.ForRpc("rpc" + std::to_string(event % 10));
        rpc.Started();
        rpc.Finished(0, 1us);
        if (event % 100 == i) metrics_.Scrape();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const Scraped scraped = Scrape();
  EXPECT_EQ(scraped[R"(linserve_sequences_total{model="shared",version="1"})"],
            3 * kThreads * kEvents);
  EXPECT_EQ(scraped[R"(linserve_queue_duration_seconds_count{model="shared",version="1"})"],
            kThreads * kEvents);
  EXPECT_EQ(scraped[R"(linserve_in_flight_requests{rpc="rpc7"})"], 0);
  EXPECT_EQ(scraped[R"(linserve_model_state{model="shared",state="READY",version="1"})"] +
                scraped[R"(linserve_model_state{model="shared",state="DRAINING",version="1"})"],
            1);
}

}  // namespace
}  // namespace linserve
