#include "rpc/tei/tei_request.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/status/retry_delay.h"
#include "core/threads/guarded.h"
#include "serving/requests/classify_request.h"
#include "serving/requests/embeddings_request.h"
#include "serving/requests/text_requests.h"

namespace linserve {
namespace {

namespace wire = tei::v1;

// Hands a request on as a query, or refuses it.
template <typename State, typename Message, typename Query>
void Submit(ServiceContext& service, const absl::Status& admitted, Received<Message>& request,
            Query query, const std::shared_ptr<State>& state) {
  if (!admitted.ok()) return state->Refuse(admitted);
  state->Submit(service, std::move(query), std::move(request.place));
}

// Gives `done` the response that `make` makes of an answer, if it fits into a message.
template <typename Answer, typename Make>
void Respond(const ServiceContext& service, const absl::StatusOr<Answer>& answer,
             const TeiDone& done, const Make& make) {
  if (!answer.ok()) return done(answer.status());
  auto made = Guarded("the answer", [&]() -> absl::StatusOr<WireMessage> {
    WireMessage message = make(*answer);
    const int64_t most = service.limits.max_message_bytes;
    if (std::cmp_less_equal(message.size(), most)) return message;
    return NeverFits(absl::ResourceExhaustedError(
        "the answer has " + std::to_string(message.size()) + " bytes, at most " +
        std::to_string(most) + " fit into a message (max_message_bytes)"));
  });
  if (!made.ok()) {
    answer->sending->Failed(made.status());
    return done(made.status());
  }
  done(TeiResponse{*std::move(made), answer->sending});
}

uint32_t CharactersOf(const std::string& text) {
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) >> 6) == 2; };
  return static_cast<uint32_t>(std::ssize(text) -
                               std::count_if(text.begin(), text.end(), continues));
}

// Says how much was computed, and where the time went.
template <typename Computed>
void Describe(const Computed& computed, uint32_t characters, TimePoint begin,
              wire::Metadata& metadata) {
  const auto total = std::chrono::steady_clock::now() - begin;
  const auto queue = computed.timing.queue + computed.timing.batch;
  const auto compute = computed.timing.compute;
  metadata.set_compute_chars(characters);
  metadata.set_compute_tokens(static_cast<uint32_t>(computed.tokens));
  metadata.set_total_time_ns(static_cast<uint64_t>(total.count()));
  metadata.set_queue_time_ns(static_cast<uint64_t>(queue.count()));
  metadata.set_inference_time_ns(static_cast<uint64_t>(compute.count()));
  metadata.set_tokenization_time_ns(
      static_cast<uint64_t>(std::max<int64_t>(0, (total - queue - compute).count())));
}

template <typename Message>
AskedTruncation TruncationOf(const Message& message) {
  AskedTruncation asked;
  asked.truncate = message.truncate();
  if (message.truncation_direction() == wire::TRUNCATION_DIRECTION_LEFT) {
    asked.side = Truncation::kLeft;
  }
  return asked;
}

// Takes over what EmbedRequest, EmbedAllRequest and EmbedSparseRequest have in common.
template <typename Message>
EmbeddingsQuery QueryOf(std::string model, Message& message) {
  EmbeddingsQuery query{.model = std::move(model), .sequences = Texts()};
  std::get<Texts>(query.sequences).push_back(std::move(*message.mutable_inputs()));
  query.truncation = TruncationOf(message);
  query.prompt_name = message.prompt_name();
  return query;
}

template <typename Message, typename Make>
void BeginEmbeddings(ServiceContext& service, TeiArrival arrival, Received<Message>& request,
                     EmbeddingsQuery query, const TeiDone& done, const Make& make) {
  const uint32_t characters = CharactersOf(std::get<Texts>(query.sequences)[0]);
  const TimePoint begin = arrival.context.begin;
  Submit(service, arrival.admitted, request, std::move(query),
         std::make_shared<EmbeddingsRequestState>(
             std::move(arrival.side), std::move(arrival.context),
             [&service, done, make, characters, begin](const absl::StatusOr<Embeddings>& answer) {
               Respond(service, answer, done, [&](const Embeddings& embeddings) {
                 auto response = make.Head();
                 Describe(embeddings, characters, begin, *response.mutable_metadata());
                 WireMessage message;
                 message.Add(response);
                 make.AddRows(embeddings.vectors[0], message);
                 return message;
               });
             }));
}

struct OneVector {
  static wire::EmbedResponse Head() { return {}; }
  static void AddRows(const Tensor& vector, WireMessage& message) {
    message.AddBytes(wire::EmbedResponse::kEmbeddingsFieldNumber, vector);
  }
};

struct AllRows {
  static wire::EmbedAllResponse Head() { return {}; }
  static void AddRows(const Tensor& rows, WireMessage& message) {
    for (int64_t row = 0; row < rows.shape()[0]; ++row) {
      WireMessage one;
      one.AddBytes(wire::TokenEmbedding::kEmbeddingsFieldNumber, rows.Rows(row, row + 1));
      message.AddMessage(wire::EmbedAllResponse::kTokenEmbeddingsFieldNumber, std::move(one));
    }
  }
};

// Has the weights that are not 0.
struct SparseWeights {
  // A weight of four bytes becomes a SparseValue, and its bytes in the message.
  static constexpr int64_t kAnswerBytes = 16;

  static wire::EmbedSparseResponse Head() { return {}; }
  static void AddRows(const Tensor& weights, WireMessage& message) {
    wire::EmbedSparseResponse response;
    const float* weight = weights.data<float>();
    for (int64_t i = 0; i < weights.elements(); ++i) {
      if (weight[i] == 0) continue;
      wire::SparseValue& value = *response.add_sparse_embeddings();
      value.set_index(static_cast<uint32_t>(i));
      value.set_value(weight[i]);
    }
    message.Add(response);
  }
};

template <typename Message>
ClassifyQuery QueryOf(std::string model, const Message& message, Texts texts) {
  ClassifyQuery query;
  query.model = std::move(model);
  query.texts = std::move(texts);
  query.raw_scores = message.raw_scores();
  query.truncation = TruncationOf(message);
  return query;
}

// Counts the characters of all sequences, of each text once for each that it is in.
uint32_t CharactersOf(const ClassifyQuery& query) {
  std::vector<uint64_t> counts;
  for (const std::string& text : query.texts) counts.push_back(CharactersOf(text));
  uint64_t all = 0;
  for (const auto& [text, second] : query.sequences) {
    all += counts[text] + (second ? counts[*second] : 0);
  }
  return static_cast<uint32_t>(all);
}

// `fill` puts what was computed into a response, beside its metadata.
template <typename Response, typename Message, typename Fill>
void BeginClassify(ServiceContext& service, TeiArrival arrival, Received<Message>& request,
                   ClassifyQuery query, const TeiDone& done, const Fill& fill) {
  const TimePoint begin = arrival.context.begin;
  Submit(service, arrival.admitted, request, std::move(query),
         std::make_shared<ClassifyRequestState>(
             std::move(arrival.side), std::move(arrival.context),
             [&service, done, fill, begin](const absl::StatusOr<Classified>& answer) {
               Respond(service, answer, done, [&](const Classified& classified) {
                 Response response;
                 fill(classified, response);
                 Describe(classified, CharactersOf(*classified.query), begin,
                          *response.mutable_metadata());
                 WireMessage message;
                 message.Add(response);
                 return message;
               });
             }));
}

void AddPredictions(const Classified& classified, wire::PredictResponse& response) {
  const std::vector<float> scores = classified.Scores(0);
  for (const size_t label : classified.BestFirst(0)) {
    wire::Prediction& prediction = *response.add_predictions();
    prediction.set_score(scores[label]);
    prediction.set_label((*classified.labels)[label]);
  }
}

void AddRanks(const Classified& classified, wire::RerankResponse& response) {
  for (const size_t place : classified.Ranking()) {
    wire::Rank& rank = *response.add_ranks();
    rank.set_index(static_cast<uint32_t>(place));
    rank.set_score(classified.Scores(place)[0]);
    if (classified.query->echoes_texts) rank.set_text(classified.query->texts[place]);
  }
}

}  // namespace

void BeginTei(ServiceContext& service, TeiArrival arrival, Received<wire::EmbedRequest> request,
              const TeiDone& done) {
  EmbeddingsQuery query = QueryOf(std::move(arrival.model), request.message);
  if (request.message.has_normalize()) query.normalize = request.message.normalize();
  if (request.message.has_dimensions()) {
    query.dimensions = request.message.dimensions();
    if (query.dimensions == 0) {
      arrival.admitted.Update(absl::InvalidArgumentError("'dimensions': expected 1 or more"));
    }
  }
  BeginEmbeddings(service, std::move(arrival), request, std::move(query), done, OneVector());
}

void BeginTei(ServiceContext& service, TeiArrival arrival, Received<wire::EmbedAllRequest> request,
              const TeiDone& done) {
  EmbeddingsQuery query = QueryOf(std::move(arrival.model), request.message);
  query.all_rows = true;
  query.normalize = false;
  BeginEmbeddings(service, std::move(arrival), request, std::move(query), done, AllRows());
}

void BeginTei(ServiceContext& service, TeiArrival arrival,
              Received<wire::EmbedSparseRequest> request, const TeiDone& done) {
  EmbeddingsQuery query = QueryOf(std::move(arrival.model), request.message);
  query.sparse = true;
  query.normalize = false;
  query.answer_bytes = SparseWeights::kAnswerBytes;
  BeginEmbeddings(service, std::move(arrival), request, std::move(query), done, SparseWeights());
}

void BeginTei(ServiceContext& service, TeiArrival arrival, Received<wire::PredictRequest> request,
              const TeiDone& done) {
  Texts texts = {std::move(*request.message.mutable_inputs())};
  ClassifyQuery query = QueryOf(std::move(arrival.model), request.message, std::move(texts));
  query.sequences = {{.text = 0}};
  BeginClassify<wire::PredictResponse>(service, std::move(arrival), request, std::move(query), done,
                                       AddPredictions);
}

void BeginTei(ServiceContext& service, TeiArrival arrival,
              Received<wire::PredictPairRequest> request, const TeiDone& done) {
  auto& inputs = *request.message.mutable_inputs();
  if (inputs.size() != 2) {
    arrival.admitted.Update(
        absl::InvalidArgumentError("'inputs': expected two texts, which are read together, found " +
                                   std::to_string(inputs.size())));
  }
  Texts texts(std::make_move_iterator(inputs.begin()), std::make_move_iterator(inputs.end()));
  ClassifyQuery query = QueryOf(std::move(arrival.model), request.message, std::move(texts));
  if (arrival.admitted.ok()) query.sequences = {{.text = 0, .second = 1}};
  BeginClassify<wire::PredictResponse>(service, std::move(arrival), request, std::move(query), done,
                                       AddPredictions);
}

void BeginTei(ServiceContext& service, TeiArrival arrival, Received<wire::RerankRequest> request,
              const TeiDone& done) {
  auto& given = *request.message.mutable_texts();
  Texts texts(std::make_move_iterator(given.begin()), std::make_move_iterator(given.end()));
  ClassifyQuery query = QueryOf(std::move(arrival.model), request.message, std::move(texts));
  query.echoes_texts = request.message.return_text();
  query.RankAll(std::move(*request.message.mutable_query()));
  BeginClassify<wire::RerankResponse>(service, std::move(arrival), request, std::move(query), done,
                                      AddRanks);
}

void BeginTei(ServiceContext& service, TeiArrival arrival, Received<wire::EncodeRequest> request,
              const TeiDone& done) {
  TokenizeQuery query{.model = std::move(arrival.model),
                      .texts = {std::move(*request.message.mutable_inputs())},
                      .marks = request.message.add_special_tokens(),
                      .prompt_name = request.message.prompt_name()};
  Submit(service, arrival.admitted, request, std::move(query),
         std::make_shared<TokenizeRequestState>(
             std::move(arrival.side), std::move(arrival.context),
             [&service, done](const absl::StatusOr<Tokenized>& answer) {
               Respond(service, answer, done, [](const Tokenized& tokenized) {
                 const Tokenized::Text& text = tokenized.texts[0];
                 wire::EncodeResponse response;
                 for (size_t i = 0; i < text.ids.size(); ++i) {
                   wire::SimpleToken& token = *response.add_tokens();
                   token.set_id(static_cast<uint32_t>(text.ids[i]));
                   token.set_text(text.TokenText(i, *tokenized.tokenizer));
                   token.set_special(text.places[i].is_mark);
                   if (token.special()) continue;
                   token.set_start(static_cast<uint32_t>(text.places[i].begin));
                   token.set_stop(static_cast<uint32_t>(text.places[i].end));
                 }
                 WireMessage message;
                 message.Add(response);
                 return message;
               });
             }));
}

void BeginTei(ServiceContext& service, TeiArrival arrival, Received<wire::DecodeRequest> request,
              const TeiDone& done) {
  DecodeQuery query{.model = std::move(arrival.model),
                    .sequences = {{request.message.ids().begin(), request.message.ids().end()}},
                    .skip_marks = request.message.skip_special_tokens()};
  request.message.clear_ids();
  Submit(service, arrival.admitted, request, std::move(query),
         std::make_shared<DecodeRequestState>(
             std::move(arrival.side), std::move(arrival.context),
             [&service, done](const absl::StatusOr<Decoded>& answer) {
               Respond(service, answer, done, [](const Decoded& decoded) {
                 wire::DecodeResponse response;
                 response.set_text(decoded.texts[0]);
                 WireMessage message;
                 message.Add(response);
                 return message;
               });
             }));
}

}  // namespace linserve
