/// Servers of one test alone, to be stopped, paused, killed and started again: in a temporary folder, on free
/// ports, gone with the object and with the process.
///
/// Every call returns when the server has done it and throws std::runtime_error, with the end of its log,
/// when it does not within three minutes. A Kafka takes about 4 s to start, a PostgreSQL 1 s: share one
/// (`services.hpp`) where nothing is done to it. One thread, which must outlive the object, owns it.
#pragma once

#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace millrace::support {

/// What all have in common.
class private_server {
public:
    virtual ~private_server() = default;
    private_server(const private_server&) = delete;
    private_server& operator=(const private_server&) = delete;

    /// Again after `stop` or `kill`, on the same ports and data.
    void start();

    /// SIGKILL to the server and all of its processes.
    void kill();

    /// SIGSTOP and SIGCONT to the server and all of its processes: connections stay and nothing answers.
    void pause();
    void resume();

    [[nodiscard]] bool running() { return process_ && process_->running(); }
    [[nodiscard]] pid_t pid() const { return process_ ? process_->pid() : -1; }
    [[nodiscard]] std::string log() const { return read_file(folder_.path() / "server.log"); }
    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }

protected:
    /// Prepares it by `services.sh KIND init FOLDER arguments...`.
    private_server(std::string kind, const std::vector<std::string>& arguments);

    [[nodiscard]] virtual bool ready() const = 0;
    [[nodiscard]] const std::string& address(const std::string& name) const { return addresses_.at(name); }
    void stop_by(int signal);

private:
    std::vector<pid_t> signal_all(int number) const;
    [[noreturn]] void fail(const std::string& what) const;

    std::string kind_;
    temporary_folder folder_;
    std::map<std::string, std::string> addresses_;
    std::unique_ptr<process> process_;
};

class private_postgres : public private_server {
public:
    /// Settings of postgresql.conf, such as `max_connections=50`.
    explicit private_postgres(const std::vector<std::string>& settings = {});

    /// A standby of `primary`, by streaming; starts as a copy of it.
    explicit private_postgres(const private_postgres& primary, std::vector<std::string> settings = {});

    [[nodiscard]] std::uint16_t port() const;

    /// As the superuser.
    [[nodiscard]] std::string url(const std::string& database = "postgres") const;

    void stop() { stop_by(SIGINT); }               ///< Fast: transactions are rolled back, connections ended.
    void stop_immediately() { stop_by(SIGQUIT); }  ///< As after a crash: the next start recovers.
    void restart();

    /// More settings; for those that need a restart, restart it.
    void configure(const std::vector<std::string>& settings);

    /// Makes a standby the primary; returns when it accepts writes.
    void promote();

private:
    [[nodiscard]] bool ready() const override;
};

/// Listeners, users and certificates as those of the shared one.
class private_kafka : public private_server {
public:
    /// Settings of server.properties, such as `producer.id.expiration.ms=1500`. With `proxy_port`, one more
    /// listener tells its clients to connect there, where a `fault_proxy` listens that leads to
    /// `proxied_port()`.
    explicit private_kafka(const std::vector<std::string>& settings = {}, std::uint16_t proxy_port = 0);

    [[nodiscard]] std::string bootstrap() const { return "127.0.0.1:" + address("plaintext"); }
    [[nodiscard]] std::string ssl() const { return "127.0.0.1:" + address("ssl"); }
    [[nodiscard]] std::string sasl() const { return "127.0.0.1:" + address("sasl"); }
    [[nodiscard]] std::uint16_t proxied_port() const;

    void stop() { stop_by(SIGTERM); }
    void restart();

    /// From now on the broker cannot write to its disk. A restart ends it.
    void fill_disk() const;

private:
    [[nodiscard]] bool ready() const override;
};

/// Pools transactions; its clients are the server's superuser.
class private_pgbouncer : public private_server {
public:
    /// Settings of the section [pgbouncer], such as `default_pool_size=2`.
    explicit private_pgbouncer(std::uint16_t postgres_port, const std::vector<std::string>& settings = {});

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string url(const std::string& database = "postgres") const;

    void stop() { stop_by(SIGTERM); }
    void restart();

private:
    [[nodiscard]] bool ready() const override;
};

/// kinesis-local: forgets everything when it ends.
class private_kinesis : public private_server {
public:
    /// Of its environment, such as `SHARD_LIMIT=10`.
    explicit private_kinesis(const std::vector<std::string>& settings = {});

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + address("port"); }
    [[nodiscard]] std::string tls_endpoint() const { return "https://localhost:" + address("tls_port"); }

private:
    [[nodiscard]] bool ready() const override;
};

/// dynalite: what it has acknowledged is there again after `kill` and `start`.
class private_dynamodb : public private_server {
public:
    /// Of its command line, such as `--createTableMs`, `500`.
    explicit private_dynamodb(const std::vector<std::string>& arguments = {});

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + address("port"); }

private:
    [[nodiscard]] bool ready() const override;
};

/// moto, whose checks of signatures a test may switch on.
class private_moto : public private_server {
public:
    private_moto();

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + address("port"); }

private:
    [[nodiscard]] bool ready() const override;
};

/// Apicurio Registry: what it has acknowledged is there again after `kill` and `start`, which takes some 10
/// s.
class private_registry : public private_server {
public:
    /// Of its environment, such as `APICURIO_CCOMPAT_MAX_SUBJECTS=10`.
    explicit private_registry(const std::vector<std::string>& settings = {});

    [[nodiscard]] std::uint16_t port() const;

    /// The base URL of Confluent's API.
    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + address("port") + "/apis/ccompat/v7";
    }

private:
    [[nodiscard]] bool ready() const override;
};

/// Whether a server at this port of 127.0.0.1 answers a GET by HTTP with 200.
[[nodiscard]] bool http_answers(std::uint16_t port, const std::string& path);

/// The port of a `postgresql://` or `http://` address, such as the shared server's.
[[nodiscard]] std::uint16_t port_of(const std::string& url);

}  // namespace millrace::support
