#include "topo/deploy/upload.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "topo/deploy/transfer.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr Milliseconds kQuestion(30'000);

std::string words_of(const Outcome& outcome) {
    return printable(trimmed(outcome.err.empty() ? outcome.out : outcome.err), LineEnds::Replace);
}

std::string advice(const std::string& said) {
    if (said.find("No space left") != std::string::npos || said.find("no space left") != std::string::npos)
        return "the target's disk is full: topo prune removes what earlier deployments left behind";
    return {};
}

}  // namespace

host::Result<Staging> Staging::open(const Target& target) {
    Command command = target.shell("d=\"${XDG_CACHE_HOME:-$HOME/.cache}/topo/staging\"; for p in sha256sum tar tail; do command -v $p >/dev/null || { echo \"$p is missing\" >&2; exit 9; }; done; "
                                   "umask 077; mkdir -p \"$d/blobs/sha256\" && printf '%s' \"$d\"");
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (!outcome.ok() || outcome.out.empty())
        return std::unexpected(host::Error(ErrorCode::AccessFailed, "no staging folder on the target: " + words_of(outcome), outcome.status == 9 ? "topo deploy --no-registry sends whole images instead" : advice(words_of(outcome))));
    return Staging(target, outcome.out);
}

host::Result<void> Staging::run(const std::string& script, std::string input) const {
    Command command = target_.shell("STAGING=" + shell_quoted(folder_) + "\n" + script);
    command.input = std::move(input);
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (outcome.ok()) return {};
    return std::unexpected(host::Error(ErrorCode::AccessFailed, fmt::format("exit status {}: {}", outcome.status, words_of(outcome)), advice(words_of(outcome))));
}

host::Result<void> Staging::upload_one(const Blob& blob, const std::function<void(std::uint64_t)>& sent) const {
    const std::string path = shell_quoted(folder_ + "/blobs/sha256/" + blob.digest);
    // How much is there? Two tries: a part that turns out to be damaged is sent anew.
    for (int attempt = 0; attempt < 2; ++attempt) {
        Command ask = target_.shell(fmt::format("if [ -f {0} ]; then echo done; elif [ -f {0}.part ]; then wc -c < {0}.part; else echo 0; fi", path));
        ask.timeout = kQuestion;
        TRY_ASSIGN(const Outcome there, capture(ask));
        if (!there.ok()) return host::failure(ErrorCode::AccessFailed, "the target did not answer: {}", words_of(there));
        const std::string_view answer = trimmed(there.out);
        if (answer == "done") {
            sent(blob.bytes.size());
            return {};
        }
        std::uint64_t offset = 0;
        std::from_chars(answer.data(), answer.data() + answer.size(), offset);
        if (offset > blob.bytes.size()) offset = 0;
        Command put = target_.shell(fmt::format("{} {}.part", offset == 0 ? "cat >" : "cat >>", path));
        TRY_ASSIGN(const Outcome sending, feed(put, blob.bytes.substr(offset), [&](std::uint64_t bytes) { sent(offset + bytes); }));
        if (!sending.ok()) {
            const std::string said = words_of(sending);
            return std::unexpected(host::Error(ErrorCode::AccessFailed, fmt::format("layer {} broke off: {}", blob.digest.substr(0, 12), said.empty() ? "the connection was lost" : said),
                                               advice(said).empty() ? "run it again: it goes on where it ended" : advice(said)));
        }
        Command verify = target_.shell(fmt::format("set -- $(sha256sum {0}.part); if [ \"$1\" = {1} ]; then mv {0}.part {0}; else rm -f {0}.part; exit 7; fi", path, blob.digest));
        TRY_ASSIGN(const Outcome verified, capture(verify));
        if (verified.ok()) return {};
        if (verified.status != 7) return host::failure(ErrorCode::AccessFailed, "layer {} could not be verified: {}", blob.digest.substr(0, 12), words_of(verified));
    }
    return host::failure(ErrorCode::InvalidExternalData, "layer {} arrived damaged, twice", blob.digest.substr(0, 12));
}

host::Result<void> Staging::upload(const std::vector<Blob>& blobs, const std::function<void(const TransferProgress&)>& progress) const {
    if (blobs.empty()) return {};
    std::uint64_t total = 0;
    for (const Blob& blob : blobs) total += blob.bytes.size();
    std::mutex mutex;
    std::map<std::string, std::uint64_t> done;
    std::optional<host::Error> trouble;
    std::atomic<std::size_t> next{0};
    const auto started = std::chrono::steady_clock::now();
    const auto work = [&] {
        for (std::size_t i; (i = next.fetch_add(1)) < blobs.size();) {
            const Blob& blob = blobs[i];
            const auto result = upload_one(blob, [&](std::uint64_t bytes) {
                const std::lock_guard lock(mutex);
                done[blob.digest] = bytes;
                if (!progress) return;
                TransferProgress now{.layer = blob.digest.substr(0, 12), .done = bytes, .total = blob.bytes.size(), .all_done = 0, .all_total = total, .bytes_per_second = 0};
                for (const auto& [digest, n] : done) now.all_done += n;
                const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
                now.bytes_per_second = seconds > 0.05 ? static_cast<double>(now.all_done) / seconds : 0;
                progress(now);
            });
            const std::lock_guard lock(mutex);
            if (!result && !trouble) trouble = result.error();
            if (trouble) return;
        }
    };
    // sshd's MaxSessions may be as low as 2.
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, blobs.size()); ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    if (trouble) return std::unexpected(*trouble);
    return {};
}

}  // namespace talpa::topo
