/// One lambda for each alternative of a variant: `std::visit(overload{...}, what)`.
#pragma once

namespace millrace {

template <class... F>
struct overload : F... {
    using F::operator()...;
};
template <class... F>
overload(F...) -> overload<F...>;

}  // namespace millrace
