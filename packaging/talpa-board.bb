# Sketch of a recipe for NXP's Yocto (scarthgap): the release tarball as it is into the image, units enabled. Put the tarball beside
# it, add to the layer of your image, and to local.conf: IMAGE_INSTALL:append = " talpa-board". Not built by anybody yet.
SUMMARY = "Image classifier on the Ethos-U65 of the i.MX 93: firmware, runtime, web page"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/Apache-2.0;md5=89aea4e17d99a7cacdbeed46a0096b10"

SRC_URI = "file://talpa-board_${PV}_linux_arm64.tar.gz;subdir=release"
S = "${WORKDIR}/release"
COMPATIBLE_HOST = "aarch64.*-linux"

inherit systemd
SYSTEMD_SERVICE:${PN} = "talpa-runner.service talpa-webapp.service"

do_configure[noexec] = "1"
do_compile[noexec] = "1"
do_install() {
    cp -r --no-preserve=ownership ${S}/usr ${S}/etc ${S}/lib ${D}/
    # Where the image has one /usr for all (usrmerge), /lib is a link.
    if ${@bb.utils.contains('DISTRO_FEATURES', 'usrmerge', 'true', 'false', d)}; then
        cp -r ${D}/lib/. ${D}/usr/lib/
        rm -rf ${D}/lib
    fi
}

FILES:${PN} += "/lib/firmware /lib/systemd ${nonarch_base_libdir}/firmware ${libdir}/talpa /usr/lib/talpa ${systemd_system_unitdir}"
# Static programs that were stripped already; the firmware is for another core.
INSANE_SKIP:${PN} = "already-stripped arch ldflags"
INHIBIT_PACKAGE_STRIP = "1"
