// Puts the stages of scheduling together: preparation, blocks, order of actions, weights, memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/schedule/allocate.h"
#include "compiler/schedule/filters.h"
#include "compiler/schedule/maps.h"
#include "compiler/schedule/plan.h"
#include "compiler/schedule/prepare.h"

namespace talpa::compiler {
namespace {

constexpr unsigned kLutSlots = 8, kLutSlotBytes = 256;

// Which table lies in which slot; a table that is still there is not loaded again.
class LutSlots {
  public:
    struct Found {
        std::uint8_t slot = 0;
        bool loaded = false;
    };
    Found find(const Table& table) {
        const auto slots = static_cast<unsigned>(table.size() / kLutSlotBytes);
        for (unsigned s = 0; s + slots <= kLutSlots; s += slots)
            if (held_[s].table == table && held_[s].slots == slots) {
                touch(s, slots);
                return {static_cast<std::uint8_t>(s), true};
            }
        unsigned best = 0;
        std::uint64_t oldest = UINT64_MAX;
        for (unsigned s = 0; s + slots <= kLutSlots; s += slots) {
            std::uint64_t used = 0;
            for (unsigned i = s; i < s + slots; ++i) used = std::max(used, held_[i].used);
            if (used < oldest) {
                oldest = used;
                best = s;
            }
        }
        for (unsigned i = best; i < best + slots; ++i) forget(i);
        held_[best].table = table;
        held_[best].slots = slots;
        touch(best, slots);
        return {static_cast<std::uint8_t>(best), false};
    }
    /// Parts without banks of their own for tables lose them to any other operation.
    void forget_all() {
        for (unsigned i = 0; i < kLutSlots; ++i) held_[i] = {};
    }

  private:
    void touch(unsigned slot, unsigned slots) {
        ++now_;
        for (unsigned i = slot; i < slot + slots; ++i) held_[i].used = now_;
    }
    // A table that begins before the slot may reach into it.
    void forget(unsigned slot) {
        for (unsigned i = 0; i <= slot; ++i)
            if (i + held_[i].slots > slot) held_[i] = {};
    }
    struct Held {
        Table table;
        unsigned slots = 0;
        std::uint64_t used = 0;
    };
    std::array<Held, kLutSlots> held_;
    std::uint64_t now_ = 0;
};

// Region 0: every table, constant and filter once, 16-aligned.
class Constants {
  public:
    explicit Constants(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
    std::uint64_t add(const std::vector<std::uint8_t>& data) {
        const auto [at, added] = known_.try_emplace(data, bytes_.size());
        if (added) {
            bytes_.insert(bytes_.end(), data.begin(), data.end());
            bytes_.resize((bytes_.size() + 15) / 16 * 16);
        }
        return at->second;
    }

  private:
    std::vector<std::uint8_t>& bytes_;
    std::map<std::vector<std::uint8_t>, std::uint64_t> known_;
};

}  // namespace

host::Result<Plan> schedule(Network network, const Target& target) {
    Plan plan;
    fuse_tables(network);
    choose_layouts(network);
    plan.network = std::move(network);
    const Network& n = plan.network;
    const std::uint8_t fast = target.fast_region();

    plan.tensors.resize(n.tensors.size());
    for (std::size_t i = 0; i < n.tensors.size(); ++i) {
        using Role = Tensor::Role;
        const Role role = n.tensors[i].role;
        plan.tensors[i].region = role == Role::Constant ? 0 : role == Role::Internal ? fast : 1;
    }

    // Blocks of whole operations.
    BlockChooser chooser(target);
    std::vector<Block> blocks(n.steps.size());
    for (std::size_t i = 0; i < n.steps.size(); ++i) {
        const Step& s = n.steps[i];
        npu::Operation op = rows_of_step(n, plan.tensors, s, 0, s.ofm.height);
        op.cores = s.filter ? target.hardware->cores : 1;
        if (s.filter) {
            op.weights[0].size = estimated_weight_bytes(s);
            op.scales[0].size = record_bytes(s);
        }
        blocks[i] = chooser.choose(op);
        if (blocks[i].height == 0)
            return host::failure(ErrorCode::NotSupported, "no block of {} fits the shared RAM of {}", describe(n, s),
                                 target.npu);
    }
    plan.filters = encode_filters(n, blocks, *target.hardware);

    LutSlots slots;
    for (std::size_t i = 0; i < n.steps.size(); ++i) {
        const Step& s = n.steps[i];
        Action run{Action::Kind::Run, static_cast<std::uint32_t>(i), 0, s.ofm.height, blocks[i], 0};
        if (s.table) {
            const auto found = slots.find(*s.table);
            run.lut_slot = found.slot;
            if (!found.loaded)
                plan.actions.push_back({Action::Kind::LoadTable, static_cast<std::uint32_t>(i), 0, 0, {}, found.slot});
        } else if (target.hardware->reserved_end_banks == 0) {
            slots.forget_all();
        }
        plan.actions.push_back(run);
    }

    Constants constants(plan.constants);
    plan.tables.resize(n.steps.size());
    for (std::size_t i = 0; i < n.steps.size(); ++i) {
        if (n.steps[i].filter) {
            EncodedFilter& f = plan.filters[i];
            f.constant_offset = f.address = constants.add(f.bytes);
        }
        if (n.steps[i].table) plan.tables[i] = constants.add(*n.steps[i].table);
    }
    for (std::size_t i = 0; i < n.tensors.size(); ++i)
        if (n.tensors[i].role == Tensor::Role::Constant) plan.tensors[i].address = constants.add(n.tensors[i].data);

    // Lives of tensors, in actions; inputs from the start, outputs to the end.
    std::vector<LiveRange> lives(n.tensors.size());
    const auto last_time = static_cast<std::uint32_t>(plan.actions.size());
    std::vector<bool> used(n.tensors.size());
    for (std::uint32_t time = 0; time < plan.actions.size(); ++time) {
        if (plan.actions[time].kind != Action::Kind::Run) continue;
        const Step& s = n.steps[plan.actions[time].step];
        for (const View* v : {&s.ifm, &s.ifm2, &s.ofm}) {
            if (v->tensor == kNoTensor) continue;
            LiveRange& r = lives[v->tensor];
            if (!used[v->tensor]) r.first = time;
            r.last = time;
            used[v->tensor] = true;
        }
    }
    // A network that only copies could leave an output where its equal input was: nobody could tell that it ran.
    const bool only_copies = std::all_of(n.steps.begin(), n.steps.end(), [](const Step& s) {
        return s.op.kind == npu::OpKind::Max && s.op.ifm2_is_scalar && s.table == nullptr;
    });
    for (const std::uint8_t region : {std::uint8_t{1}, std::uint8_t{2}}) {
        std::vector<LiveRange> here;
        std::vector<std::size_t> which;
        for (std::size_t i = 0; i < n.tensors.size(); ++i) {
            const Tensor& t = n.tensors[i];
            if (t.role == Tensor::Role::Constant || plan.tensors[i].region != region) continue;
            LiveRange r = lives[i];
            if (t.role == Tensor::Role::Input) r.first = 0;
            if (t.role == Tensor::Role::Output) r.last = last_time;
            if (t.role == Tensor::Role::Output && only_copies) r.first = 0;
            if (!used[i] && t.role == Tensor::Role::Internal) continue;
            r.size = t.bytes();
            here.push_back(r);
            which.push_back(i);
        }
        const std::uint64_t top = allocate(here, 0);
        for (std::size_t i = 0; i < which.size(); ++i) plan.tensors[which[i]].address = here[i].address;
        (region == 1 ? plan.arena_bytes : plan.fast_bytes) = top;
        const Peak peak = peak_of(here);
        if (region == fast && top > target.sram_bytes)
            return host::failure(
                ErrorCode::OutOfResources, "{} bytes of SRAM are required, {} are available; most is needed at {}", top,
                target.sram_bytes,
                describe(n, n.steps[plan.actions[std::min<std::size_t>(peak.time, last_time - 1)].step]));
    }
    return plan;
}

}  // namespace talpa::compiler
