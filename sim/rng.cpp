#include "rng.hpp"

namespace millrace::sim {

std::uint64_t rng::next() {
    state_ += 0x9e3779b97f4a7c15U;
    auto mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

std::uint64_t rng::below(std::uint64_t bound) {
    return next() % bound;
}

}  // namespace millrace::sim
