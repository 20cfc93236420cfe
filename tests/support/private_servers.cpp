#include "support/private_servers.hpp"

#include "support/sql_connection.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include <libpq-fe.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::support {

namespace {

constexpr std::chrono::seconds patience{180};  // a broker on a machine that is busy with other things
const std::string script = MILLRACE_SOURCE_DIR "/tests/services/services.sh";

std::map<std::string, std::string> names_and_values(const std::string& text) {
    std::map<std::string, std::string> result;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        const auto equals = text.find('=', at);
        if (equals < end) result[text.substr(at, equals - at)] = text.substr(equals + 1, end - equals - 1);
        at = end + 1;
    }
    return result;
}

/// The process and all below it.
void add_tree(pid_t root, std::vector<pid_t>& tree) {
    tree.push_back(root);
    const auto id = std::to_string(root);
    std::ifstream children{"/proc/" + id + "/task/" + id + "/children"};
    for (pid_t child = 0; children >> child;)
        add_tree(child, tree);
}

bool postgres_answers(const std::string& url) {
    return ::PQping(url.c_str()) == PQPING_OK;
}

std::uint16_t to_port(const std::string& text) {
    return static_cast<std::uint16_t>(std::stoul(text));
}

std::string postgres_url(std::uint16_t port, const std::string& database) {
    return "postgresql://postgres@127.0.0.1:" + std::to_string(port) + "/" + database;
}

std::vector<std::string> preceded_by(std::vector<std::string> first, const std::vector<std::string>& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
}

std::vector<std::string> kafka_arguments(const std::vector<std::string>& settings, std::uint16_t proxy_port) {
    if (proxy_port == 0) return settings;
    return preceded_by({"--proxied", std::to_string(proxy_port)}, settings);
}

/// Also of a process that has ended and was not waited for yet.
bool is_gone(pid_t of) {
    std::ifstream file{"/proc/" + std::to_string(of) + "/stat"};
    std::string text;
    std::getline(file, text, '\0');  // fails without a word when the process ends meanwhile
    const auto name_end = text.rfind(") ");
    return name_end == std::string::npos || text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

}  // namespace

private_server::private_server(std::string kind, const std::vector<std::string>& arguments)
    : kind_(std::move(kind)) {
    ::chmod(folder_.path().c_str(), 0755);  // a superuser's server runs as another user
    const auto prepared = support::run(
        preceded_by({script, kind_, "init", folder_.path().string()}, arguments), std::string{}, 5 * patience
    );
    if (prepared.status != 0) throw std::runtime_error("cannot prepare a " + kind_ + ": " + prepared.errors);
    addresses_ = names_and_values(prepared.output);
}

void private_server::start() {
    const auto log_file = folder_.path() / "server.log";
    std::filesystem::remove(log_file);
    spawn_options options;
    options.output = log_file;
    options.errors = log_file;
    process_ = std::make_unique<process>(
        std::vector<std::string>{script, kind_, "run", folder_.path().string()}, options
    );
    if (!eventually(patience, [this] { return !running() || ready(); })) fail("does not answer");
    if (!running()) fail("ended at its start");
}

void private_server::stop_by(int signal) {
    process_->signal(signal);
    if (!process_->wait(patience)) fail("does not stop");
}

void private_server::kill() {
    const auto tree = signal_all(SIGKILL);
    if (!process_->wait(patience)) fail("does not die");
    // A child that still holds the server's shared memory would keep the next one from starting.
    if (!eventually(patience, [&] { return std::all_of(tree.begin(), tree.end(), is_gone); }))
        fail("does not die");
}

void private_server::pause() {
    signal_all(SIGSTOP);
}

void private_server::resume() {
    signal_all(SIGCONT);
}

std::vector<pid_t> private_server::signal_all(int number) const {
    std::vector<pid_t> tree;
    add_tree(pid(), tree);
    for (const auto member : tree)
        ::kill(member, number);
    return tree;
}

void private_server::fail(const std::string& what) const {
    constexpr std::size_t end_of_log = 2000;
    const auto text = log();
    throw std::runtime_error(
        "the private " + kind_ + " " + what + ": " +
        text.substr(text.size() - std::min(text.size(), end_of_log))
    );
}

private_postgres::private_postgres(const std::vector<std::string>& settings)
    : private_server("postgres", settings) {
    start();
}

private_postgres::private_postgres(const private_postgres& primary, std::vector<std::string> settings)
    : private_server("postgres", preceded_by({"--standby-of", std::to_string(primary.port())}, settings)) {
    start();
}

std::uint16_t private_postgres::port() const {
    return to_port(address("port"));
}

std::string private_postgres::url(const std::string& database) const {
    return postgres_url(port(), database);
}

void private_postgres::restart() {
    stop();
    start();
}

void private_postgres::configure(const std::vector<std::string>& settings) {
    std::ofstream file{folder() / "data" / "postgresql.conf", std::ios::app};
    for (const auto& setting : settings)
        file << setting << '\n';
    file.close();
    ::kill(pid(), SIGHUP);
}

void private_postgres::promote() {
    sql_connection connection{url()};
    if (connection.value("SELECT pg_promote(true, 60)") != "t")
        throw std::runtime_error("the private postgres was not promoted within a minute");
}

bool private_postgres::ready() const {
    return postgres_answers(url());
}

private_kafka::private_kafka(const std::vector<std::string>& settings, std::uint16_t proxy_port)
    : private_server("kafka", kafka_arguments(settings, proxy_port)) {
    start();
}

std::uint16_t private_kafka::proxied_port() const {
    return to_port(address("proxied"));
}

void private_kafka::restart() {
    stop();
    start();
}

void private_kafka::fill_disk() const {
    const rlimit nothing{.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    ::prlimit(pid(), RLIMIT_FSIZE, &nothing, nullptr);
}

bool private_kafka::ready() const {
    return log().find("Kafka Server started") != std::string::npos;
}

private_pgbouncer::private_pgbouncer(std::uint16_t postgres_port, const std::vector<std::string>& settings)
    : private_server("pgbouncer", preceded_by({std::to_string(postgres_port)}, settings)) {
    start();
}

std::uint16_t private_pgbouncer::port() const {
    return to_port(address("port"));
}

std::string private_pgbouncer::url(const std::string& database) const {
    return postgres_url(port(), database);
}

void private_pgbouncer::restart() {
    stop();
    start();
}

bool private_pgbouncer::ready() const {
    return postgres_answers(url());
}

private_kinesis::private_kinesis(const std::vector<std::string>& settings)
    : private_server("kinesis", settings) {
    start();
}

std::uint16_t private_kinesis::port() const {
    return to_port(address("port"));
}

bool private_kinesis::ready() const {
    return http_answers(port(), "/healthcheck");
}

private_dynamodb::private_dynamodb(const std::vector<std::string>& arguments)
    : private_server("dynamodb", arguments) {
    start();
}

std::uint16_t private_dynamodb::port() const {
    return to_port(address("port"));
}

bool private_dynamodb::ready() const {
    return http_answers(port(), "/");
}

private_moto::private_moto() : private_server("moto", {}) {
    start();
}

std::uint16_t private_moto::port() const {
    return to_port(address("port"));
}

bool private_moto::ready() const {
    return http_answers(port(), "/moto-api/");
}

private_registry::private_registry(const std::vector<std::string>& settings)
    : private_server("registry", settings) {
    start();
}
std::uint16_t private_registry::port() const {
    return to_port(address("port"));
}
bool private_registry::ready() const {
    return http_answers(port(), "/apis/ccompat/v7/subjects");
}

bool http_answers(std::uint16_t port, const std::string& path) {
    const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string request = "GET " + path + " HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
    std::string status(std::string_view("HTTP/1.1 200").size(), '\0');
    const bool answered =
        ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::send(connection, request.data(), request.size(), MSG_NOSIGNAL) > 0 &&
        ::recv(connection, status.data(), status.size(), MSG_WAITALL) == static_cast<ssize_t>(status.size());
    ::close(connection);
    return answered && status.starts_with("HTTP/1.") && status.ends_with(" 200");
}

std::uint16_t port_of(const std::string& url) {
    const auto user_end = url.find('@');
    const auto host = user_end == std::string::npos ? url.find("//") + 2 : user_end;
    return to_port(url.substr(url.find(':', host) + 1));
}

}  // namespace millrace::support
