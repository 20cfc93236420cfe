/// Turns the server's rows into a batch: no allocation for a row, and no row that spoils the others.
///
/// Keeps its working memory from one reply to the next. One thread.
#pragma once

#include "port/outbox_source.hpp"
#include "rows.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace millrace::postgres {

class row_decoder {
public:
    struct outcome {
        std::shared_ptr<const row_batch> batch;
        bool cut{false};        ///< It ended at a limit, and rows of the reply are left out.
        bool cut_large{false};  ///< A row that the statement left empty ended it.
    };

    /// Takes at most `rows_max` rows and `bytes_max` bytes, but at least one row.
    [[nodiscard]] outcome decode(const rows& from, std::size_t rows_max, std::size_t bytes_max);

private:
    void read_headers(const rows& from, std::size_t index, outbox_row& into, row_batch& batch);

    std::vector<outbox_row> taken_;
    std::vector<record_header> headers_;
    std::vector<std::size_t> first_header_;
};

}  // namespace millrace::postgres
