/// A TCP proxy between a program under test and its server, that fails on demand: cuts connections, passes
/// nothing, refuses, or loses exactly one reply.
///
/// It listens on a port of 127.0.0.1 that stays its own while it refuses. For Kafka, whose brokers tell
/// clients where to connect, make the proxy first and the broker with its port: see `private_kafka`. A fault
/// is in force when its call returns. Any thread may call; one thread of the proxy's own copies.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace millrace::support {

class fault_proxy {
public:
    /// How the server's side of a connection ends that is broken.
    enum class ending : std::uint8_t {
        reset,
        close,  ///< For kinesis-local, which listens no more once a new connection was reset.
    };

    /// Leads to a port of 127.0.0.1; without one, connections are refused until `lead_to`.
    explicit fault_proxy(std::uint16_t server_port = 0, ending to_server = ending::reset);
    ~fault_proxy();
    fault_proxy(const fault_proxy&) = delete;
    fault_proxy& operator=(const fault_proxy&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// New connections go there.
    void lead_to(std::uint16_t server_port);

    /// Ends all connections, by a reset to the client, and to the server as it was told.
    void cut();

    /// A black hole: connections stay and are still accepted, no byte passes in either direction.
    void hold();

    /// The connections that stand pass nothing any more, as when their packets are dropped; new ones do.
    void strand();

    /// Requests pass, replies do not.
    void hold_replies();

    /// Replies pass slowly: so many bytes of each connection at once, some fifty times a second; 0: as they
    /// come.
    void trickle(std::size_t bytes);

    /// Ends `hold` and `hold_replies`: what was held back passes now.
    void release();

    /// New connections are refused; those that stand, stay.
    void refuse();
    void accept();

    /// Loses one reply: the server gets and carries out the next request whose bytes contain `request`
    /// (empty: any), but what it answers to it is swallowed and that connection is cut. Replies of the same
    /// connection that were under way at that moment are lost, too.
    void lose_reply(std::string request = {});

    /// Loses replies as `lose_reply` does, to so many of a thousand requests, until it is called with 0.
    void lose_some(std::uint32_t of_a_thousand);

    /// Whether a loss that `lose_reply` or `lose_some` asked for has happened within the limit.
    [[nodiscard]] bool lost_reply(std::chrono::milliseconds limit = std::chrono::seconds{10}) const;

    /// That stand now.
    [[nodiscard]] std::size_t connections() const;

    /// Accepted since the beginning.
    [[nodiscard]] std::uint64_t accepted() const noexcept { return accepted_; }

private:
    struct channel {  // one direction
        int from{-1};
        int to{-1};
        std::vector<char> buffer;
        std::size_t sent{0};
        bool ended{false};
    };
    struct connection {
        int client{-1};
        int server{-1};
        channel requests;
        channel replies;
        std::string last_request;  // its end, as the text looked for may come in two reads
        bool next_reply_is_lost{false};
        bool stranded{false};
        bool drains{false};  // the client is cut; the server finishes what it was asked
    };
    enum class holding : std::uint8_t { nothing, replies, everything };

    void end(connection& one) const;
    void copy();
    void accept_one();
    void step(connection& one);
    bool move(connection& one, channel& way);
    void lose(connection& one);
    void note_request(connection& one, std::string_view bytes);
    void changed();

    const ending to_server_;
    std::uint16_t port_{0};
    int listener_{-1};
    int wake_{-1};
    std::atomic<std::uint64_t> accepted_{0};
    std::atomic<bool> reply_lost_{false};

    mutable std::mutex mutex_;  // all below, and the sockets
    std::uint16_t server_port_;
    std::list<connection> connections_;
    std::uint64_t generation_{0};  // of the sockets: a poll of older ones says nothing
    holding hold_{holding::nothing};
    std::size_t trickle_{0};
    bool refuses_{false};
    bool stops_{false};
    std::optional<std::string> to_lose_;
    std::uint32_t some_lost_{0};
    std::minstd_rand random_;

    std::thread thread_;
};

}  // namespace millrace::support
