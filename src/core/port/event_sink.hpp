/// Where a relay publishes.
///
/// Order is kept by two channels. On *main*, rows go out in the order given and many requests may be in
/// flight; the first row that is refused stops the channel: every row behind it, in that request and in later
/// ones, comes back as `purged` without having been published, until `reset_main`. On *probe*, each request
/// is one row and is judged alone; refusals there stop nothing.
///
/// An outcome that is not known (time-out, cut connection) is an error with `in_doubt` and stops main
/// likewise.
#pragma once

#include "port/host.hpp"
#include "port/outbox_source.hpp"

#include <millrace/names.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace millrace {

/// A row handed over, with the batch that keeps its bytes alive.
struct outgoing_row {
    const outbox_row* row{nullptr};
    std::shared_ptr<const row_batch> batch;
};

/// What became of one row that was not published.
struct row_failure {
    row_id id;
    error why;

    /// A suspicion, or a refusal that named other rows as well: this row may be innocent, also when its
    /// request held no other. It must be sent on probe before it is judged.
    bool shared_blame{false};

    /// The fault is that of the row's topic or partition, whoever else is well: others can go on without it.
    bool of_topic{false};

    /// It was refused before anybody else was asked: this says nothing about who takes rows in the end.
    bool early{false};
};

/// What became of one request: rows that are not named as failures were published, durably.
struct publish_outcome {
    std::vector<row_failure> failures;  ///< by id
};

enum class channel : std::uint8_t { main, probe };

class event_sink {
public:
    virtual ~event_sink() = default;

    /// Publishes rows in the order given. `mine` goes into the optional header by which consumers can drop
    /// what a woken zombie still sends. The completion is called once for the request; an error stands for
    /// all its rows.
    virtual void publish(
        channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done
    ) = 0;

    /// Forgets what main still holds (each request completes with `purged` where it was not published) and
    /// lets it publish again. Completes when nothing of the old channel can be published any more.
    virtual void reset_main(completion<void> done) = 0;

    /// The end of a life: as `reset_main`, and probes that are not published complete likewise. A sink whose
    /// probes end by themselves in a moment need not cut them short.
    virtual void purge(completion<void> done) { reset_main(std::move(done)); }

    /// The process ends: nothing new is asked of the service any more, so that the end need not wait for an
    /// answer that does not come. What was handed over goes on.
    virtual void wind_down() {}

    /// What can be known beforehand: nothing when the sink will probably take the row, otherwise why not.
    /// Such a row is sent alone on probe.
    [[nodiscard]] virtual std::optional<error> suspect(const outbox_row& row) const = 0;

    /// Why nothing is heard of it, where its client knows before any request comes back; nothing once it
    /// answers.
    [[nodiscard]] virtual std::optional<error> trouble() const { return std::nullopt; }

    /// Whether something must come before the row can be sent, such as its schema; the sink has asked for it
    /// by the end of this call. Such a row is suspect, and is not handed over before `watch` told of a change
    /// and it awaits nothing any more.
    [[nodiscard]] virtual bool awaits(const outbox_row&) const { return false; }

    /// `changed` is called on the host, never inside another call, when what rows await may have come.
    virtual void watch(std::function<void()>) {}

    struct capacity {
        std::size_t request_rows_max{1000};
        std::size_t request_bytes_max{1 << 20};
        std::size_t requests_in_flight_max{4};
    };
    [[nodiscard]] virtual capacity limits() const = 0;
};

}  // namespace millrace
