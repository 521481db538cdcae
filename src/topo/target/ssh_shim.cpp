#include "topo/target/ssh_shim.h"

#include <sys/stat.h>

#include "base/host/file.h"
#include "base/host/sha256.h"
#include "topo/system/text.h"
#include "topo/target/ssh_arguments.h"

namespace talpa::topo {

host::Result<std::string> ssh_shim(const Target& target) {
    const std::string private_folder = control_folder();
    if (target.is_local() || private_folder.empty()) return std::string();
    const auto ssh = find_program("ssh");
    if (!ssh) return host::failure(ErrorCode::NotFound, "\"ssh\" not found in $PATH");
    std::vector<std::string> words = target.ssh_words();
    words.resize(words.size() - ssh_arguments(target.destination()).size());  // the destination is docker's to name
    words.front() = ssh->string();
    const std::string text = "#!/bin/sh\nexec " + shell_quoted(words) + " \"$@\"\n";
    // One folder for each text: several topos at a time do not take each other's away.
    const std::string folder = private_folder + "/shim-" + host::sha256_hex(text).substr(0, 12);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return host::failure(ErrorCode::AccessFailed, "cannot make the folder {}", folder);
    const std::string path = folder + "/ssh";
    const auto there = host::read_text(path, 1 << 16);
    if (!there || *there != text) TRY(host::write_text(path, text));
    if (::chmod(path.c_str(), 0700) != 0)
        return host::failure(ErrorCode::AccessFailed, "cannot make {} a program", path);
    return folder;
}

}  // namespace talpa::topo
