#include "topo/cli/several_targets.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/host/file.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

struct Result {
    std::string target;
    int status = -1;
    double seconds = 0;
    std::string last_error;
};

constexpr std::size_t kAtOnce = 4;

// The same command line for one target.
std::vector<std::string> words_for(const Invocation& invocation, const std::string& target) {
    std::error_code error;
    std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe", error).string(), "deploy",
                                      "--target", target};
    for (const auto& [flag, values] : invocation.flags) {
        if (flag == "--target" || flag == "--targets" || flag == "--group" || flag == "--output" || flag == "--json")
            continue;
        for (const std::string& value : values) words.push_back(flag + "=" + value);
    }
    if (invocation.json()) words.emplace_back("--json");
    if (invocation.logging.least > Level::Info) words.emplace_back("--quiet");
    if (invocation.logging.least < Level::Info) words.emplace_back("--verbose");
    return words;
}

}  // namespace

host::Result<std::vector<std::string>> parse_targets(const std::string& text, const std::vector<std::string>& groups) {
    std::vector<std::string> targets, known;
    std::string group;
    int line = 0;
    for (const std::string& raw : lines_of(text)) {
        ++line;
        const std::string_view row = trimmed(std::string_view(raw).substr(0, raw.find('#')));
        if (row.empty()) continue;
        // "[::1]:22" is a destination, "[lab]" a group.
        if (row.starts_with('[') && row.ends_with(']') && row.find(':') == std::string_view::npos) {
            group = trimmed(row.substr(1, row.size() - 2));
            known.push_back(group);
            continue;
        }
        if (row.find_first_of(" \t") != std::string_view::npos)
            return host::failure(ErrorCode::InvalidArgument, "line {}: one target a line, or [GROUP]", line);
        if (const auto parsed = parse_destination(row); !parsed)
            return host::failure(ErrorCode::InvalidArgument, "line {}: {}", line, parsed.error().message);
        const bool wanted = groups.empty() || std::find(groups.begin(), groups.end(), group) != groups.end();
        if (wanted && std::find(targets.begin(), targets.end(), row) == targets.end()) targets.emplace_back(row);
    }
    for (const std::string& one : groups)
        if (std::find(known.begin(), known.end(), one) == known.end())
            return host::failure(ErrorCode::NotFound, "there is no group \"{}\"", one);
    return targets;
}

std::expected<std::vector<std::string>, Failure> all_targets(const Invocation& invocation) {
    std::vector<std::string> targets = invocation.all("--target");
    if (const auto file = invocation.value("--targets")) {
        TRY_ASSIGN(const std::string text, host::read_text(*file, 1 << 20));
        auto parsed = parse_targets(text, invocation.all("--group"));
        if (!parsed) return std::unexpected(Failure(std::move(parsed.error()).with_context(*file)));
        targets.insert(targets.end(), parsed->begin(), parsed->end());
        if (targets.empty()) return wrong_usage(*file + " names no targets");
    } else if (invocation.given("--group")) {
        return wrong_usage("--group needs --targets FILE");
    }
    std::vector<std::string> once;  // the same one twice at a time would be in its own way
    for (const std::string& target : targets)
        if (std::find(once.begin(), once.end(), target) == once.end()) once.push_back(target);
    return once;
}

Done deploy_to_all(const Invocation& invocation, const std::vector<std::string>& targets) {
    std::vector<Result> results(targets.size());
    std::mutex mutex;
    const auto one = [&](std::size_t i) {
        const auto started = std::chrono::steady_clock::now();
        Result& result = results[i];
        result.target = targets[i];
        const auto ran = stream_lines({.argv = words_for(invocation, targets[i])}, [&](std::string_view line) {
            const std::lock_guard lock(mutex);
            if (const std::size_t at = line.find(" ERROR "); at != std::string_view::npos)
                result.last_error = line.substr(at + 7);
            if (!invocation.json())
                print(fmt::format("{} | {}", targets[i], line));
            else
                print(fmt::format("{{\"target\":{},\"event\":{}}}", json_text(targets[i]),
                                  line.starts_with('{') ? std::string(line) : json_text(line)));
        });
        result.status = ran ? ran->status : 1;
        if (!ran) result.last_error = ran.error().message;
        result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    };
    one(0);
    std::atomic<std::size_t> next{1};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < std::min(kAtOnce, targets.size() - 1); ++t)
        threads.emplace_back([&] {
            for (std::size_t i; !interrupted() && (i = next.fetch_add(1)) < targets.size();) one(i);
        });
    for (std::thread& thread : threads) thread.join();
    std::size_t width = 6, failed = 0;
    for (const Result& r : results) width = std::max(width, r.target.size());
    std::string table = fmt::format("\n{:<{}}   Result       Seconds\n", "Target", width), json;
    for (const Result& r : results) {
        failed += r.status != 0;
        const std::string word = r.status == 0  ? "ok"
                                 : r.status < 0 ? "not begun"
                                                : fmt::format("failed ({})", r.status);
        table += fmt::format("{:<{}}   {:<12} {:.1f}{}\n", r.target, width, word, r.seconds,
                             r.last_error.empty() ? "" : "   " + printable(r.last_error, LineEnds::Replace));
        json += fmt::format("{}{{\"target\":{},\"status\":{},\"seconds\":{:.3f}}}", json.empty() ? "" : ",",
                            json_text(r.target), r.status, r.seconds);
    }
    print(invocation.json() ? "{\"results\":[" + json + "]}" : table);
    return failed == 0 ? 0 : 1;
}

}  // namespace talpa::topo
