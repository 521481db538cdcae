#include "board/cpu/cpu.h"

#include "board/cpu/machine.h"

namespace talpa::board::cpu {

const char* stop_name(Stop stop) {
    switch (stop) {
        case Stop::Limit:
            return "instruction limit";
        case Stop::Sleeping:
            return "sleeping";
        case Stop::Requested:
            return "stop requested";
        case Stop::Breakpoint:
            return "breakpoint";
        case Stop::Bkpt:
            return "BKPT instruction";
        case Stop::Lockup:
            return "lockup";
        case Stop::Reset:
            return "system reset";
    }
    return "unknown";
}

Cpu::Cpu(Bus& bus, const Options& options) : machine_(std::make_unique<Machine>(bus, options)) {}
Cpu::~Cpu() = default;

void Cpu::reset(std::uint32_t vtor) {
    machine_->reset(vtor);
}
Stop Cpu::run(std::uint64_t limit) {
    return machine_->run(limit);
}

void Cpu::set_irq(unsigned irq, bool level) {
    machine_->nvic.set_line(irq, level);
    machine_->wake();
}
void Cpu::set_event() {
    machine_->set_event();
}
void Cpu::request_stop() {
    machine_->stop_requested = true;
    machine_->wake();
}
bool Cpu::wait(std::uint64_t microseconds) {
    return machine_->wait(microseconds);
}
void Cpu::skip(std::uint64_t cycles) {
    machine_->skip(cycles);
}
std::uint64_t Cpu::cycles_until_timer() const {
    return machine_->cycles_until_timer();
}

std::uint64_t Cpu::cycles() const {
    return machine_->now();
}
std::uint64_t Cpu::instructions() const {
    return machine_->now() - machine_->skipped();
}
std::uint64_t Cpu::exceptions_taken() const {
    return machine_->exceptions_taken;
}
bool Cpu::locked_up() const {
    return machine_->exceptions.locked_up;
}
bool Cpu::sleeping() const {
    return machine_->sleeping;
}

Registers Cpu::registers() const {
    const Core& core = machine_->core;
    const Exceptions& e = machine_->exceptions;
    Registers out;
    out.r = core.r;
    out.r[kPc] = core.pc;
    out.xpsr = e.xpsr();
    out.msp = e.main_stack();
    out.psp = e.process_stack();
    out.msplim = e.read_special(10, true);
    out.psplim = e.read_special(11, true);
    out.primask = e.primask ? 1 : 0;
    out.basepri = e.basepri;
    out.faultmask = e.faultmask ? 1 : 0;
    out.control = static_cast<std::uint8_t>(e.control);
    out.s = core.f;
    out.fpscr = core.fpscr;
    return out;
}

void Cpu::set_registers(const Registers& in) {
    Core& core = machine_->core;
    Exceptions& e = machine_->exceptions;
    e.control = in.control & 0xF;
    e.primask = (in.primask & 1) != 0;
    e.faultmask = (in.faultmask & 1) != 0;
    e.basepri = in.basepri & Nvic::kPriorityBits;
    e.apply_mode();
    e.set_main_stack(in.msp);
    e.set_process_stack(in.psp);
    for (unsigned i = 0; i < 15; i++) core.r[i] = in.r[i];
    core.r[kSp] &= ~3U;
    core.pc = in.r[kPc] & ~1U;
    core.set_nzcv(in.xpsr);
    core.q = bit(in.xpsr, 27) ? 1 : 0;
    core.ge = static_cast<u8>(bits(in.xpsr, 16, 4));
    core.it = static_cast<u8>((bits(in.xpsr, 10, 6) << 2) | bits(in.xpsr, 25, 2));
    core.f = in.s;
    core.fpscr = in.fpscr;
}

std::uint32_t Cpu::pc() const {
    return machine_->core.pc;
}
void Cpu::set_pc(std::uint32_t address) {
    machine_->core.pc = address & ~1U;
    machine_->core.it = 0;
}

void Cpu::add_breakpoint(std::uint32_t address) {
    machine_->breakpoints.insert(address & ~1U);
    machine_->forget_code();
}
void Cpu::remove_breakpoint(std::uint32_t address) {
    machine_->breakpoints.erase(address & ~1U);
    machine_->forget_code();
}
void Cpu::code_changed() {
    machine_->forget_code();
}

bool Cpu::read_memory(std::uint32_t address, unsigned size, std::uint32_t& value) {
    return !machine_->memory.read(address, size, true, kPlain, value);
}
bool Cpu::write_memory(std::uint32_t address, unsigned size, std::uint32_t value) {
    return !machine_->memory.write(address, size, true, kPlain, value);
}

}  // namespace talpa::board::cpu
