// How a group of steps runs in stripes: the last step leads, each other computes just what is asked of it, two rows at
// least. Says how many rows every tensor must keep and how often each step runs. In the middle of a map the same
// pattern repeats, so it is followed only as long as that shows; to execute a group, all of it is.
#pragma once

#include <vector>

#include "compiler/schedule/planner.h"

namespace talpa::compiler {

class Planner::Simulation {
  public:
    Simulation(const Planner& planner, std::uint32_t begin, std::uint32_t end, std::uint32_t rows)
        : p_(planner), begin_(begin), end_(end), rows_(rows), state_(end - begin) {}

    /// `stripes`: takes all of them in their order; null: the pattern may be cut short.
    void run(Shape& shape, std::vector<Stripe>* stripes);

  private:
    struct State {
        std::uint32_t produced = 0, largest = 0;
    };
    struct Kept {
        TensorId tensor = kNoTensor;
        std::uint32_t rows = 0;
        std::uint32_t top = 0;  ///< behind the highest row that has been written
    };
    using Pattern = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // step, rows

    [[nodiscard]] bool inside(TensorId t) const;
    [[nodiscard]] std::uint32_t lowest_needed(TensorId t) const;
    void produce(std::uint32_t index, std::uint32_t to);
    [[nodiscard]] bool ensure(std::uint32_t index, std::uint32_t to);
    [[nodiscard]] bool lead(std::uint32_t to, const std::vector<std::uint32_t>& others);
    /// Counts periods that need not be followed, if the last rounds show one; moves the states on.
    [[nodiscard]] std::uint32_t skip(Shape& shape, const std::vector<Pattern>& rounds);
    static void count(Shape& shape, const Pattern& round, std::uint32_t times);

    const Planner& p_;
    std::uint32_t begin_, end_, rows_;
    std::vector<State> state_;
    std::vector<Kept> kept_;
    Pattern round_;
    std::vector<Stripe>* stripes_ = nullptr;
    std::size_t total_ = 0;
};

}  // namespace talpa::compiler
