// The application behind the server: routes requests, hands pictures to the worker, and shows the board.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "webapp/broker.h"
#include "webapp/checks.h"
#include "webapp/events.h"
#include "webapp/gate.h"
#include "webapp/http/server.h"
#include "webapp/metrics.h"
#include "webapp/models.h"
#include "webapp/options.h"
#include "webapp/sandbox.h"
#include "webapp/worker.h"

namespace talpa::webapp {

/// A picture that the page offers.
struct Sample {
    std::string name, content_type;
    std::string bytes;
};

class App final : public http::Handler {
  public:
    struct Parts {
        Options options;
        std::unique_ptr<Broker> broker;
        std::vector<ModelPtr> models;
        std::string program_error, labels_error;
        classifier::Labels labels;
        std::vector<Sample> samples;
        std::vector<SandboxStep> sandbox;
    };
    App(Parts parts, http::Server& server);
    ~App() override;

    [[nodiscard]] http::Admission admit(const http::Head& head) override;
    void handle(http::Request request, std::shared_ptr<http::Exchange> exchange) override;
    [[nodiscard]] http::Response trouble(int status, const std::string& detail) override;

    /// Runs the board checks and logs them.
    void check_and_log();
    /// Ends the run that goes on and fails what waits.
    void stop() { worker_.stop(); }

  private:
    using ExchangePtr = std::shared_ptr<http::Exchange>;
    using Handle = void (App::*)(http::Request&, const ExchangePtr&);
    struct Route {
        std::string_view method, path;  ///< a path that ends in "/" takes what follows
        bool uploads;
        bool public_path;
        Handle handle;
    };
    static const Route kRoutes[];
    /// `allowed`: by which methods a path can be had that cannot be had by this one; empty: there is no such path.
    [[nodiscard]] const Route* route(const http::Head& head, std::string& allowed) const;

    void classify(http::Request& request, const ExchangePtr& exchange);
    void get_checks(http::Request& request, const ExchangePtr& exchange);
    void get_models(http::Request& request, const ExchangePtr& exchange);
    void add_model(http::Request& request, const ExchangePtr& exchange);
    void get_model(http::Request& request, const ExchangePtr& exchange);
    void remove_model(http::Request& request, const ExchangePtr& exchange);
    void get_samples(http::Request& request, const ExchangePtr& exchange);
    void get_sample(http::Request& request, const ExchangePtr& exchange);
    void get_status(http::Request& request, const ExchangePtr& exchange);
    void get_events(http::Request& request, const ExchangePtr& exchange);
    void get_metrics(http::Request& request, const ExchangePtr& exchange);
    void get_health(http::Request& request, const ExchangePtr& exchange);
    void get_ready(http::Request& request, const ExchangePtr& exchange);
    void get_openapi(http::Request& request, const ExchangePtr& exchange);
    void get_page(http::Request& request, const ExchangePtr& exchange);
    void get_asset(http::Request& request, const ExchangePtr& exchange);

    void reply(const ExchangePtr& exchange, const std::string& route, http::Response response);
    void reply(const ExchangePtr& exchange, const std::string& route, const host::Json& json, int status = 200);
    void reply(const ExchangePtr& exchange, const std::string& route, const Problem& problem);
    void answer_job(const ExchangePtr& exchange, Job& job, double receive_ms, bool several);
    void with_checks(std::function<void(const std::vector<Check>&)> then);
    void look_loop();

    Options options_;
    std::unique_ptr<Broker> broker_;
    Gate gate_;
    Models models_;
    std::string program_error_, labels_error_;
    classifier::Labels labels_;
    std::vector<Sample> samples_;
    std::vector<SandboxStep> sandbox_;
    http::Server& server_;
    EventHub hub_;
    Metrics metrics_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

    // What is seen of the board now and then, for /api/status and the events.
    mutable std::mutex seen_mutex_;
    link::host::RemoteprocLook seen_;
    std::string tty_;
    std::mutex ready_mutex_;
    std::vector<ExchangePtr> ready_waiting_;  ///< all get the same answer of the firmware
    std::mutex look_mutex_;
    std::condition_variable look_changed_;
    bool ending_ = false;

    Worker worker_;
    std::thread look_thread_;
};

}  // namespace talpa::webapp
