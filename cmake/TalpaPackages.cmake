# What goes into which package: one component a package, laid out as Debian has it. scripts/packages.sh (./run packages) makes
# Debian packages and tarballs of these rules; what it asks the programs for (man pages, completions) it puts into
# ${CMAKE_BINARY_DIR}/packaging first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY TRUE)  # packaging does not build
set(CMAKE_INSTALL_PREFIX /usr CACHE PATH "where packages put things" FORCE)
set(talpa_said ${CMAKE_BINARY_DIR}/packaging)

# talpa_package(NAME SUMMARY "summary\nwhat it is" SECTION s [PROGRAMS p… MANUALS regex]): what all packages have.
function(talpa_package name)
  cmake_parse_arguments(P "" "SUMMARY;MANUALS;SECTION" "PROGRAMS" ${ARGN})
  if(P_PROGRAMS)
    install(TARGETS ${P_PROGRAMS} RUNTIME DESTINATION bin COMPONENT ${name})
    string(REGEX MATCH "[0-9]$" section "${P_MANUALS}")
    install(DIRECTORY ${talpa_said}/man/ DESTINATION share/man/man${section} COMPONENT ${name}
            FILES_MATCHING REGEX "/${P_MANUALS}\\.gz$")
  endif()
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/copyright ${CMAKE_SOURCE_DIR}/docs/credits.md DESTINATION share/doc/${name} COMPONENT ${name})
  string(TOUPPER ${name} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${P_SECTION} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION ${P_SUMMARY} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION ${P_SUMMARY} PARENT_SCOPE)
  list(APPEND CPACK_COMPONENTS_ALL ${name})
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
endfunction()

# The shells' own places for completions.
function(talpa_completions name)
  install(FILES ${talpa_said}/completions/${name} DESTINATION share/bash-completion/completions COMPONENT ${name})
  install(FILES ${talpa_said}/completions/_${name} DESTINATION share/zsh/vendor-completions COMPONENT ${name})
  install(FILES ${talpa_said}/completions/${name}.fish DESTINATION share/fish/vendor_completions.d COMPONENT ${name})
endfunction()

# A unit of packaging/, which says where programs are on Debian.
function(talpa_unit component unit)
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/${unit} DESTINATION /lib/systemd/system COMPONENT ${component})
endfunction()

set(CPACK_COMPONENTS_ALL "")
if(TALPA_ARM64)
  talpa_package(talpa PROGRAMS talpa MANUALS "talpa(-[a-z-]+)?\\.1" SECTION utils SUMMARY
    "runs ExecuTorch programs for the Ethos-U65 NPU (board's part)
Runs, inspects and compares .pte programs on an exact model of the NPU, and
classifies pictures on the Cortex-M33 and NPU of the board that it runs on.
The compiler and the virtual board are in the package for amd64.")
else()
  talpa_package(talpa PROGRAMS talpa MANUALS "talpa(-[a-z-]+)?\\.1" SECTION utils SUMMARY
    "compiler, inspector and virtual board for the Ethos-U65 NPU
Takes trained networks to .pte programs for the NPU of an i.MX 93, runs and
inspects them on an exact model of it, and is a virtual i.MX 93. The Topo
project of an image classifier is in /usr/share/talpa/projects.")
  # As scripts/assemble_project.sh left it, with the web application for both architectures: it deploys without a build.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/build/projects DESTINATION share/talpa COMPONENT talpa OPTIONAL USE_SOURCE_PERMISSIONS)
  set(CPACK_DEBIAN_TALPA_PACKAGE_RECOMMENDS "fuse3, openssh-server, topo")
endif()
talpa_completions(talpa)

talpa_package(topo PROGRAMS topo MANUALS "topo(-[a-z-]+)?\\.1" SECTION utils SUMMARY
  "deploys projects of containers and firmware to a board over SSH
Builds the images of a Compose project, sends the board what it lacks and
starts it there: containers on Linux, firmware on the Cortex-M33.")
set(CPACK_DEBIAN_TOPO_PACKAGE_DEPENDS "openssh-client")
set(CPACK_DEBIAN_TOPO_PACKAGE_RECOMMENDS "podman | docker.io, git")
talpa_completions(topo)
# What `topo install remoteproc-runtime` takes when it is given no file, for boards of each architecture that was built.
install(DIRECTORY ${talpa_said}/archives/ DESTINATION share/topo COMPONENT topo)

talpa_package(remoteproc-runtime PROGRAMS remoteproc-runtime containerd-shim-remoteproc-v1
  MANUALS "(remoteproc-runtime|containerd-shim-remoteproc-v1)\\.8" SECTION admin SUMMARY
  "OCI runtime and containerd shim whose containers are firmware
Podman, Docker, containerd and Kubernetes boot an ELF on a remote processor,
show its log, notice when it crashes, and stop it. firmware@NAME.service boots
a bundle without an engine.")
talpa_completions(remoteproc-runtime)
set(CPACK_DEBIAN_REMOTEPROC-RUNTIME_PACKAGE_SUGGESTS "containerd, podman, docker.io")
# The unit of the docs is for programs that were copied to /usr/local/bin.
file(READ docs/remoteproc/firmware@.service talpa_unit_text)
string(REPLACE "/usr/local/bin/" "/usr/bin/" talpa_unit_text "${talpa_unit_text}")
file(WRITE ${CMAKE_BINARY_DIR}/firmware@.service "${talpa_unit_text}")
install(FILES ${CMAKE_BINARY_DIR}/firmware@.service DESTINATION /lib/systemd/system COMPONENT remoteproc-runtime)
install(FILES docs/remoteproc/containerd-config.toml docs/remoteproc/kubernetes.yaml
        DESTINATION share/doc/remoteproc-runtime/examples COMPONENT remoteproc-runtime)

talpa_package(talpa-webapp PROGRAMS talpa-webapp MANUALS "talpa-webapp\\.8" SECTION web SUMMARY
  "web page that classifies pictures on an i.MX 93
Stages pictures and programs in the memory of the board's Cortex-M33, has its
NPU classify them, and shows what came out and how long it took.")
talpa_unit(talpa-webapp talpa-webapp.service)
install(FILES packaging/talpa-webapp.default DESTINATION /etc/default RENAME talpa-webapp COMPONENT talpa-webapp)
set(CPACK_DEBIAN_TALPA-WEBAPP_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/conffiles)

# The firmware: the same bytes for each architecture, a bundle for remoteproc-runtime and a link where the kernel looks.
set(talpa_runner ${CMAKE_SOURCE_DIR}/build/firmware/executorch_runner_cm33.elf)
talpa_package(talpa-board SECTION misc SUMMARY
  "Cortex-M33 firmware that runs .pte programs on an i.MX 93
The resident runner of talpa, as a bundle for remoteproc-runtime and in
/lib/firmware. The unit talpa-runner boots it without a container engine.")
set(CPACK_DEBIAN_TALPA-BOARD_PACKAGE_DEPENDS "remoteproc-runtime (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TALPA-BOARD_PACKAGE_RECOMMENDS "talpa, talpa-webapp")
install(FILES ${talpa_runner} DESTINATION lib/talpa/runner/rootfs COMPONENT talpa-board)
install(FILES ${talpa_said}/runner/config.json DESTINATION lib/talpa/runner COMPONENT talpa-board)
install(FILES ${talpa_said}/runner/executorch_runner_cm33.elf DESTINATION /lib/firmware COMPONENT talpa-board)

install(FILES docs/board.md DESTINATION share/doc/talpa-board COMPONENT talpa-board)
talpa_unit(talpa-board talpa-runner.service)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The talpa developers <talpa@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
if(NOT TALPA_ARM64)  # there everything is static
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
