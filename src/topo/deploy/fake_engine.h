// An engine for tests: a `podman` of a few lines of shell whose containers are files, on PATH of this machine. It keeps
// what matters here of Podman 4.3: a paused container is neither stopped nor started, one that lends its network is not
// removed before those it lends it to, a name is given once. Images called bad… make containers that do not start.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/host/file.h"
#include "topo/engine/engine.h"
#include "topo/system/text.h"

namespace talpa::topo {

inline constexpr const char* kFakeEngine = R"SH(#!/bin/sh
d=$TOPO_FAKE_ENGINE
printf '%s\n' "$*" >> "$d/log"
if [ -f "$d/refuse" ]; then
    while IFS= read -r pattern; do
        case "$*" in $pattern) echo "refused: $*" >&2; exit 1;; esac
    done < "$d/refuse"
fi
say() { echo "$*" >&2; exit 125; }
put() { echo "id='$id' name='$name' service='$service' number='$number' hash='$hash' image='$image' state='$state' lent='$lent'" > "$d/c/$id"; }
find() {
    for f in "$d"/c/*; do
        [ -f "$f" ] || continue
        . "$f"
        if [ "$name" = "$1" ] || [ "$id" = "$1" ]; then return 0; fi
    done
    return 1
}
image_id() {
    t="$d/tags/$(echo "$1" | tr / +)"
    if [ -f "$t" ]; then cat "$t"; else echo "$1"; fi
}
verb=$1; shift
case $verb in
ps) for f in "$d"/c/*; do [ ! -f "$f" ] || { . "$f"; echo "$id|Up"; }; done;;
inspect)
    format= comma= out=
    [ "$1" != --type ] || shift 2
    [ "$1" != --format ] || { format=$2; shift 2; }
    for one; do
        find "$one" || say "no such container $one"
        case $format in
        '{{.Name}} {{.State.Status}}') echo "$name $state";;
        *State.Status*) echo "$state||0|";;
        ?*) echo "$name";;
        *) out="$out$comma{\"Id\":\"$id\",\"Name\":\"$name\",\"Image\":\"$image\",\"State\":{\"Status\":\"$state\"},\"Config\":{\"Labels\":{\"com.docker.compose.service\":\"$service\",\"com.docker.compose.container-number\":\"$number\",\"com.docker.compose.config-hash\":\"$hash\"}}}"
           comma=,;;
        esac
    done
    [ -n "$format" ] || echo "[$out]";;
stop)
    for one; do
        find "$one" || say "no such container"
        [ "$state" != paused ] || say "can only stop created or running containers"
        [ "$state" != running ] || state=exited
        put
    done;;
start) find "$1" || say "no such container"; [ "$state" != paused ] || say "cannot start a paused container"; state=running; put;;
pause) find "$1" || say "no such container"; [ "$state" = running ] || say "not running"; state=paused; put;;
unpause) find "$1" || say "no such container"; [ "$state" = paused ] || say "not paused"; state=running; put;;
rename) ! find "$2" || say "the container name \"$2\" is already in use"; find "$1" || say "no such container"; name=$2; put;;
rm)
    shift; bad=0
    for one; do
        find "$one" || { echo "no such container $one" >&2; bad=1; continue; }
        gone=$id
        if grep -q "lent='$gone'" "$d"/c/*; then echo "container $gone has dependent containers which must be removed before it" >&2; bad=1; continue; fi
        rm "$d/c/$gone"
    done
    exit $bad;;
run)
    own_hash= own_service= own_number=1 own_name= from= before=
    for word; do
        case $before$word in
        --labelcom.docker.compose.service=*) own_service=${word#*=};;
        --labelcom.docker.compose.container-number=*) own_number=${word#*=};;
        --labelcom.docker.compose.config-hash=*) own_hash=${word#*=};;
        --name*) own_name=$word;;
        --networkcontainer:*) from=${word#*:};;
        esac
        before=$word
    done
    own_image=$(image_id "$word")
    # Those that are to be at work at the same time wait for each other.
    if [ -f "$d/meet" ] && grep -qx "$own_name" "$d/meet"; then
        touch "$d/here.$own_name"
        n=0
        while [ $(ls "$d" | grep -c '^here') -lt $(wc -l < "$d/meet") ]; do
            n=$((n + 1)); [ $n -lt 100 ] || say "$own_name is alone"
            sleep 0.1
        done
    fi
    own_lent=
    if [ -n "$from" ]; then
        find "$from" || say "no such container $from"
        [ "$state" = running ] || say "$from does not run"
        own_lent=$id
    fi
    ! find "$own_name" || say "the container name \"$own_name\" is already in use"
    id=new$$ name=$own_name service=$own_service number=$own_number hash=$own_hash image=$own_image state=created lent=$own_lent
    put
    case $image in bad*) say "cannot start";; esac
    state=running; put; echo "$id";;
image)
    shift; comma=; printf '['
    for one; do printf '%s{"Id":"%s","RepoTags":["%s"]}' "$comma" "$(image_id "$one")" "$one"; comma=,; done
    echo ']';;
tag) echo "$1" > "$d/tags/$(echo "$2" | tr / +)";;
network|volume|logs|healthcheck) ;;
*) say "unknown: $verb";;
esac
)SH";

class FakeEngine : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("topo_fake_engine_" + std::to_string(::getpid()));
        for (const char* name : {"bin", "c", "tags", "p"}) std::filesystem::create_directories(folder_ / name);
        const std::filesystem::path program = folder_ / "bin" / "podman";
        std::ofstream(program) << kFakeEngine;
        ::chmod(program.c_str(), 0755);
        path_ = std::getenv("PATH");
        ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
        ::setenv("TOPO_FAKE_ENGINE", folder_.c_str(), 1);
        ::setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1);
    }
    void TearDown() override {
        ::setenv("PATH", path_.c_str(), 1);
        ::unsetenv("TOPO_FAKE_ENGINE");
        ::unsetenv("XDG_STATE_HOME");
        std::filesystem::remove_all(folder_);
    }

    /// A container that is there already.
    void there(const std::string& name, const std::string& service, const std::string& hash, const std::string& image,
               const std::string& state = "running", const std::string& lent = "") const {
        std::ofstream(folder_ / "c" / ("c-" + name))
            << "id='c-" << name << "' name='" << name << "' service='" << service << "' number='1' hash='" << hash
            << "' image='" << image << "' state='" << state << "' lent='" << lent << "'\n";
    }
    void write(const char* file, const std::string& text) const { std::ofstream(folder_ / file) << text; }
    [[nodiscard]] std::string read(const char* file) const {
        return host::read_text(folder_ / file).value_or(std::string());
    }
    [[nodiscard]] std::vector<Container> containers() const { return engine_.containers("p").value(); }
    /// "NAME IMAGE STATE" of each, by name.
    [[nodiscard]] std::vector<std::string> now() const {
        std::vector<std::string> all;
        for (const Container& c : containers()) all.push_back(c.name + " " + c.image_id + " " + c.state);
        std::sort(all.begin(), all.end());
        return all;
    }

    std::filesystem::path folder_;
    std::string path_;
    Engine engine_{EngineKind::Podman, Target(Destination{.user = {}, .host = "localhost", .port = {}})};
};

}  // namespace talpa::topo
