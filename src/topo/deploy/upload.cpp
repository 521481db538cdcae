#include "topo/deploy/upload.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "topo/deploy/transfer.h"
#include "topo/deploy/words.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

std::string advice(const std::string& said) {
    if (said.find("No space left") != std::string::npos || said.find("no space left") != std::string::npos)
        return "the target's disk is full: " + next_command("prune") + " removes what earlier deployments left behind";
    return {};
}

}  // namespace

host::Result<Staging> Staging::open(const Target& target, const std::vector<Blob>& blobs) {
    std::string digests;
    for (const Blob& blob : blobs) digests += " " + blob.digest;
    Command command = target.shell(
        "d=\"${XDG_CACHE_HOME:-$HOME/.cache}/topo/staging\"; for p in sha256sum tar tail; do command -v $p >/dev/null "
        "|| { echo \"$p is missing\" >&2; exit 9; }; done; "
        "umask 077; mkdir -p \"$d/blobs/sha256\" && cd \"$d/blobs/sha256\" || exit 1; printf '%s\\n' \"$d\"; "
        "for b in" +
        digests +
        "; do if [ -f $b ]; then echo $b done; elif [ -f $b.part ]; then echo $b $(wc -c < $b.part); fi; done");
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    const std::vector<std::string> lines = lines_of(outcome.out);
    if (!outcome.ok() || lines.empty() || lines[0].empty())
        return std::unexpected(
            host::Error(ErrorCode::AccessFailed, "no staging folder on the target: " + said_by(outcome),
                        outcome.status == 9 ? next_command("deploy --no-registry") + " sends whole images instead"
                                            : advice(said_by(outcome))));
    Staging staging(target, lines[0]);
    for (const Blob& blob : blobs)
        for (std::size_t i = 1; i < lines.size(); ++i) {
            if (!lines[i].starts_with(blob.digest + " ")) continue;
            const std::string answer = lines[i].substr(blob.digest.size() + 1);
            std::uint64_t bytes = 0;
            if (answer == "done")
                bytes = blob.bytes.size() + 1;
            else
                std::from_chars(answer.data(), answer.data() + answer.size(), bytes);
            staging.there_[blob.digest] = bytes;
        }
    return staging;
}

host::Result<void> Staging::run(const std::string& script, std::string input) const {
    Command command = target_.shell("STAGING=" + shell_quoted(folder_) + "\n" + script);
    command.input = std::move(input);
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (outcome.ok()) return {};
    return std::unexpected(host::Error(ErrorCode::AccessFailed,
                                       fmt::format("exit status {}: {}", outcome.status, said_by(outcome)),
                                       advice(said_by(outcome))));
}

host::Result<void> Staging::upload_one(const Blob& blob, const std::function<void(std::uint64_t)>& sent) const {
    const std::string path = shell_quoted(folder_ + "/blobs/sha256/" + blob.digest);
    const auto known = there_.find(blob.digest);
    std::uint64_t offset = known == there_.end() ? 0 : known->second;
    if (offset > blob.bytes.size()) {  // whole, and verified when it came
        sent(blob.bytes.size());
        return {};
    }
    // Two tries: a part that turns out to be damaged is sent anew. What is short was cut off, and stays for the next
    // time.
    for (int attempt = 0; attempt < 2; ++attempt, offset = 0) {
        const Command put = target_.shell(fmt::format(
            "{0} {1}.part || exit 6; [ $(wc -c < {1}.part) -eq {2} ] || exit 8; set -- $(sha256sum {1}.part); "
            "if [ \"$1\" = {3} ]; then mv {1}.part {1}; else rm -f {1}.part; exit 7; fi",
            offset == 0 ? "cat >" : "cat >>", path, blob.bytes.size(), blob.digest));
        TRY_ASSIGN(const Outcome sending,
                   feed(put, blob.bytes.substr(offset), [&](std::uint64_t bytes) { sent(offset + bytes); }));
        if (sending.ok()) return {};
        if (sending.status == 7) continue;
        const std::string said = said_by(sending);
        return std::unexpected(
            host::Error(ErrorCode::AccessFailed,
                        fmt::format("layer {} broke off: {}", blob.digest.substr(0, 12),
                                    said.empty() ? "the connection was lost" : said),
                        advice(said).empty() ? "run it again: it goes on where it ended" : advice(said)));
    }
    return host::failure(ErrorCode::InvalidExternalData, "layer {} arrived damaged, twice", blob.digest.substr(0, 12));
}

host::Result<void> Staging::upload(const std::vector<Blob>& blobs,
                                   const std::function<void(const TransferProgress&)>& progress) const {
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
                TransferProgress now{.layer = blob.digest.substr(0, 12),
                                     .done = bytes,
                                     .total = blob.bytes.size(),
                                     .all_done = 0,
                                     .all_total = total,
                                     .bytes_per_second = 0};
                for (const auto& [digest, n] : done) now.all_done += n;
                const double seconds =
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
                now.bytes_per_second = seconds > 0.05 ? static_cast<double>(now.all_done) / seconds : 0;
                progress(now);
            });
            const std::lock_guard lock(mutex);
            if (!result && !trouble) trouble = result.error();
            if (trouble) return;
        }
    };
    // sshd's MaxSessions may be as low as 2. Large ones first: else one is left alone at the end.
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, blobs.size()); ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    if (trouble) return std::unexpected(*trouble);
    return {};
}

}  // namespace talpa::topo
