# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A system of its own to a test: the same programs in a mount namespace, where files of the system can be changed."""
import os
import shutil
import tempfile

from harness import Skipped, wait_until


# A device that stock libibverbs takes for rxe's, by its name. /sys/class and /dev are laid out anew, since nothing
# can be added to what the kernel shows there; all that was there is there again.
FOREIGN = """
set -e
cd "$1"
mkdir -p class/infiniband/rxe0 class/infiniband_verbs/uverbs0 dev/infiniband
for entry in /sys/class/*/; do
  name=$(basename "$entry")
  case $name in infiniband*) continue ;; esac
  mkdir "class/$name"
  mount --bind "$entry" "class/$name"
done
echo '1: CA' >class/infiniband/rxe0/node_type
echo 0a00:27ff:fe4b:0001 >class/infiniband/rxe0/node_guid
echo 6 >class/infiniband_verbs/abi_version
echo rxe0 >class/infiniband_verbs/uverbs0/ibdev
echo 2 >class/infiniband_verbs/uverbs0/abi_version
echo 1:3 >class/infiniband_verbs/uverbs0/dev
ln -s /dev/null dev/infiniband/uverbs0
for name in null zero full random urandom tty; do
  touch "dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
for name in shm pts; do
  mkdir "dev/$name"
  mount --rbind "/dev/$name" "dev/$name"
done
ln -s /proc/self/fd dev/fd
mount --rbind class /sys/class
mount --rbind dev /dev
"""


# /etc is a copy, and uiwarp lies where nobody but root can change it, whoever the build tree belongs to.
LAYOUT = """
set -e
mount -t tmpfs -o mode=755 tmpfs "$1"
cp -a /etc "$1/etc"
mkdir -p "$1/own/uiwarp/bin" "$1/own/uiwarp/lib"
cp "$3/bin/uiwarp" "$3/bin/uiwarp-probe" "$1/own/uiwarp/bin"
cp -d "$3"/lib/*.so* "$1/own/uiwarp/lib"
chown -Rh root: "$1/own"
chmod -R go-w "$1/own"
mount --bind "$1/etc" /etc
mount --bind "$1/own" "$2"
rm -f /etc/ld.so.preload /etc/libibverbs.d/uiwarp.driver
echo made
exec sleep 1000
"""


def place_for(binaries):
    """A folder of root's directly below /, where nothing lies that a test needs."""
    for place in ("/opt", "/mnt", "/srv", "/media"):
        if os.path.isdir(place) and not os.path.islink(place) and not binaries.startswith(place + "/"):
            return place
    raise Skipped("needs one of the folders /opt, /mnt, /srv, /media")


class System:
    """`folder`, which is below a folder that everybody may write to, is seen inside only, as is `own`, which nobody but
    root may change and in which uiwarp lies; /etc inside is a copy."""

    def __init__(self, world):
        for program in ("unshare", "nsenter"):
            if not shutil.which(program):
                raise Skipped(f"needs {program} (package util-linux)")
        self._world = world
        self.own = place_for(world.bin)
        self.library = f"{self.own}/uiwarp/lib/libuiwarp-preload.so"
        self.folder = tempfile.mkdtemp(prefix="uiwarp-system-")
        self._holder = world.start("client", "unshare", "--mount", "--propagation", "private", "sh", "-c", LAYOUT, "sh",
                                   self.folder, self.own, os.path.dirname(world.bin), plain=True)
        wait_until(lambda: self._holder.ended() or "made" in self._holder.output, 20, "a mount namespace is made")
        if self._holder.ended():
            self.close()
            raise Skipped(f"cannot make a mount namespace here: {self._holder.output.strip()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._holder.destroy()
        os.rmdir(self.folder)

    def start(self, *program, settings=None):
        return self._world.start("client", "nsenter", "--mount", f"--target={self._holder.pid}", "--", *program,
                                 settings=settings, plain=True)

    def run(self, *program, status=0, seconds=60, settings=None):
        tool = self.start(*program, settings=settings)
        self._world.finish(tool, seconds, status)
        return tool

    def uiwarp(self, *arguments, status=0, settings=None):
        return self.run(f"{self.own}/uiwarp/bin/uiwarp", *arguments, status=status, settings=settings)

    def add_foreign_device(self):
        """rxe0, which can be listed but does nothing."""
        self.run("sh", "-c", FOREIGN, "sh", self.folder)
        tool = self.run("ibv_devices")
        if "rxe0" not in tool.output:
            raise Skipped("here libibverbs does not ask /sys for devices, so none can be made up: " + tool.output.strip())

    def preload_list(self):
        return self.run("cat", "/etc/ld.so.preload").output

    def write_preload_list(self, content):
        self.run("sh", "-c", 'printf "%s" "$1" >/etc/ld.so.preload', "sh", content)
