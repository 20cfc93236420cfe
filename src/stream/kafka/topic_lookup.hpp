/// Asks the cluster about topics, on a thread and a client of its own: librdkafka's look-ups block.
///
/// Answers are handed to `answer` on that thread. Also the place where clients are destroyed that may block.
#pragma once

#include "handles.hpp"
#include "kafka_url.hpp"
#include "topic_facts.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <string>

namespace millrace::kafka {

class topic_lookup {
public:
    /// An error says that the cluster could not be asked; a topic in trouble is an answer.
    using answer = std::function<void(const std::string& topic, result<topic_facts> facts)>;

    topic_lookup(kafka_address cluster, log_sink& log, milliseconds limit, answer tell);

    /// Waits for the look-up under way, at most its limit. What is still asked for is not answered.
    ~topic_lookup();
    topic_lookup(const topic_lookup&) = delete;
    topic_lookup& operator=(const topic_lookup&) = delete;

    /// A topic that is being asked for is not asked for twice. Thread-safe, as all below.
    void ask(const std::string& topic);

    /// Whether a broker answers, and, unless `topic` is empty, what it says of that topic. `done` runs on the
    /// thread.
    void look(std::string topic, std::function<void(result<void>)> done);

    /// From now on a `look` is answered at once, as cancelled; what is `ask`ed for goes on.
    void wind_down();

    void destroy(client_ptr client);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace::kafka
