# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A Linux guest whose kernel runs siw, the soft-iWARP driver, and runs commands for a test.

Nothing is installed: kernel and siw's source come from the distribution's packages through apt, into a
folder; the guest's RDMA tools are this machine's own. QEMU emulates the processor, so neither KVM nor
root is needed. Its user network ends each TCP connection and opens another: the peers see the octets of
each other's stream, not its segments.
"""
import base64
import hashlib
import os
import pathlib
import queue
import re
import shutil
import socket
import subprocess
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
# What siw is built with differently: it has no settings, only constants in its source.
VARIANTS = {
    "plain": {},
    "crc": {"mpa_crc_required": "true"},
    "peer": {"peer_to_peer": "true"},
    "rev1": {"mpa_version": "1"},
}
TOOLS = ("rping", "ib_write_bw", "ib_read_bw", "ib_send_bw", "rdma", "ip", "sh")
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "gcc-12": "gcc-12", "make": "make", "cpio": "cpio",
            "xz": "xz-utils", "dpkg": "dpkg", "apt-get": "apt", "ldd": "libc-bin"}
MODULES = ("virtio_pci", "virtio_net", "crc32c_generic", "rdma_ucm", "ib_uverbs", "siw")
GUEST, HOST = "10.0.2.15", "10.0.2.2"


class Missing(Exception):
    """The guest cannot be made here; the text says what it would need."""


def check_programs():
    """Missing, with what to install, unless everything that builds and runs the guest is here."""
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})
    for tool in TOOLS:
        if not shutil.which(tool):
            missing.append(f"(package with {tool})")
    if missing:
        raise Missing("programs are missing: apt-get install " + " ".join(missing))


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def libraries_of(file):
    """What the loader would load for a program or library: absolute paths."""
    return re.findall(r"(/\S+) \(0x", output_of("ldd", file))


def add_options(parser):
    """What each test with a guest takes."""
    parser.add_argument("--bin", required=True, help="folder of the uiwarp command")
    parser.add_argument("--cache", help="folder for the guest's kernel and files",
                        default=os.environ.get("UIWARP_TEST_INTEROP_CACHE") or
                        os.path.expanduser("~/.cache/uiwarp-interop"))
    parser.add_argument("--console", help="file for the guest's console")


class Image:
    """Kernel and first file system of the guest, kept in `folder` from one run to the next."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.kernel = self.folder / "vmlinuz"
        self.initrd = self.folder / "initrd"

    def make(self):
        check_programs()
        release = re.search(r"linux-image-(\d\S+)", output_of("apt-cache", "depends", "linux-image-amd64"))
        if not release:
            raise Missing("apt knows no package linux-image-amd64 (Debian 12 does, after apt-get update)")
        self.release = release[1]
        stamp = self.folder / "made"
        # What another version of this file made may lack something.
        wanted = f"{self.release} {hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()}"
        if not (stamp.exists() and stamp.read_text() == wanted):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self._fetch_kernel()
            for name, constants in VARIANTS.items():
                self._build_siw(name, constants)
            self._write_base()
            for part in ("source", "kernel", "debs"):
                shutil.rmtree(self.folder / part)
            stamp.write_text(wanted)
        self._add_init()

    def _fetch(self, *packages):
        debs = self.folder / "debs"
        debs.mkdir(exist_ok=True)
        print("fetching " + " ".join(packages), flush=True)
        done = subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *packages], cwd=debs,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Missing("apt-get download failed: " + done.stderr.strip()[-400:])
        for package in packages:
            for deb in debs.glob(package.split("=")[0] + "_*.deb"):
                subprocess.run(["dpkg", "-x", deb, self.folder / "kernel"], check=True)

    def _fetch_kernel(self):
        abi, major = self.release.rsplit("-", 1)[0], ".".join(self.release.split(".")[:2])
        version = re.search(r"^Version: (\S+)", output_of("apt-cache", "show", f"linux-headers-{self.release}"), re.M)
        if not version:
            raise Missing(f"apt knows no package linux-headers-{self.release}")
        self._fetch(f"linux-image-{self.release}", f"linux-headers-{self.release}", f"linux-headers-{abi}-common",
                    f"linux-kbuild-{major}", f"linux-source-{major}={version[1]}", "busybox-static")
        unpacked = self.folder / "kernel"
        self.headers = unpacked / f"usr/src/linux-headers-{self.release}"
        # The package's Makefile names the place where it would be installed.
        (self.headers / "Makefile").write_text(f"include {unpacked}/usr/src/linux-headers-{abi}-common/Makefile\n")
        source = self.folder / "source"
        source.mkdir()
        subprocess.run(["tar", "-xJf", unpacked / f"usr/src/linux-source-{major}.tar.xz", "-C", source,
                        "--strip-components=5", f"linux-source-{major}/drivers/infiniband/sw/siw"], check=True)
        shutil.copy(unpacked / f"boot/vmlinuz-{self.release}", self.kernel)

    def _build_siw(self, name, constants):
        print(f"building siw: {name}", flush=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as build:
            shutil.copytree(self.folder / "source", build, dirs_exist_ok=True)
            changed = 0
            for file in pathlib.Path(build).glob("*.c"):
                text = file.read_text()
                for constant, value in constants.items():
                    text, count = re.subn(rf"^((?:static )?(?:const bool|u_char) {constant})( = .*)?;",
                                          rf"\1 = {value};", text, flags=re.M)
                    changed += count
                file.write_text(text)
            if changed != len(constants):
                raise Missing(f"this kernel's siw has other constants than {list(constants)}")
            done = subprocess.run(["make", "-s", "-C", self.headers, f"M={build}", "CONFIG_RDMA_SIW=m", "modules"],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Missing("siw does not build: " + (done.stdout + done.stderr)[-800:])
            shutil.copy(f"{build}/siw.ko", self.folder / f"siw-{name}.ko")

    def _add(self, root, file, at=None):
        """`file` and the libraries it needs."""
        target = root / str(at or file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
        for library in libraries_of(file):
            if not (root / library.lstrip("/")).exists():
                self._add(root, library)

    def _write_base(self):
        root = self.folder / "base"
        for folder in ("bin", "dev", "proc", "sys", "run", "root", "tmp", "etc/libibverbs.d"):
            (root / folder).mkdir(parents=True)
        busybox = self.folder / "kernel/bin/busybox"
        shutil.copy(busybox, root / "bin/busybox")
        for tool in TOOLS:
            # busybox as shell would run its own ip.
            self._add(root, shutil.which(tool), f"/usr/bin/{tool}")
        driver = next(pathlib.Path("/usr/lib").glob("*/libibverbs/libsiw-rdmav*.so"), None)
        if not driver or not pathlib.Path("/etc/libibverbs.d/siw.driver").exists():
            raise Missing("siw's libibverbs provider is missing: apt-get install ibverbs-providers")
        self._add(root, driver)
        shutil.copy("/etc/libibverbs.d/siw.driver", root / "etc/libibverbs.d")
        # pthread_exit() loads it at run time, so ldd does not name it.
        for library in pathlib.Path("/lib").glob("*/libgcc_s.so.1"):
            self._add(root, library)
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        self._add_modules(root, busybox)
        for name in VARIANTS:
            shutil.copy(self.folder / f"siw-{name}.ko", root / f"siw-{name}.ko")

    def _add_modules(self, root, busybox):
        unpacked, place = self.folder / "kernel", f"lib/modules/{self.release}"
        # It is there to tell what siw needs; a test loads the variant that it wants.
        (unpacked / place / "updates").mkdir()
        shutil.copy(self.folder / "siw-plain.ko", unpacked / place / "updates/siw.ko")
        subprocess.run([busybox, "depmod", "-b", unpacked, self.release], check=True)
        needs = dict(line.split(":", 1) for line in (unpacked / place / "modules.dep").read_text().splitlines())
        for module in MODULES:
            for path, others in needs.items():
                if re.search(rf"(^|/){module.replace('_', '[-_]')}\.ko$", path):
                    for needed in [path] + others.split():
                        needed = needed.removeprefix(f"/{place}/")
                        target = root / place / needed
                        target.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(unpacked / place / needed, target)
        for name in ("modules.builtin", "modules.order"):
            shutil.copy(unpacked / place / name, root / place / name)
        subprocess.run([busybox, "depmod", "-b", root, self.release], check=True)

    def _add_init(self):
        root = self.folder / "base"
        shutil.copy(HERE / "guest-init", root / "init")
        (root / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
        with open(self.initrd, "wb") as out:
            subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], input=names.encode(), cwd=root,
                           stdout=out, check=True)


class Command:
    """A command that runs in the guest."""

    def __init__(self, text):
        self.text = text
        self.taken = threading.Event()
        self._done = threading.Event()
        self.status = None
        self.output = ""

    def finish(self, status, output):
        self.status, self.output = status, output
        self._done.set()

    def wait(self, seconds):
        """Its exit status; None when it has not ended after `seconds`."""
        self._done.wait(seconds)
        return self.status


class Guest:
    """A running guest. `forwards`: TCP ports of 127.0.0.1 here that lead to the same ports there."""

    def __init__(self, image, forwards, log=None):
        self._commands = {}
        self._speaking = threading.Lock()
        self._ready = queue.Queue()
        self._scratch = tempfile.TemporaryDirectory()
        console, control = f"{self._scratch.name}/console", f"{self._scratch.name}/control"
        self.console = pathlib.Path(log or console)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(control)
        listener.listen(1)
        net = "user,id=n0,ipv6=off" + "".join(f",hostfwd=tcp:127.0.0.1:{p}-{GUEST}:{p}" for p in forwards)
        self.process = subprocess.Popen(
            ["nice", "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
             "-no-reboot", "-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
             "-kernel", image.kernel, "-initrd", image.initrd,
             "-append", "console=ttyS0 quiet panic=-1 mitigations=off", "-serial", f"file:{self.console}",
             "-chardev", f"socket,id=c1,path={control}", "-serial", "chardev:c1",
             "-netdev", net, "-device", "virtio-net-pci,netdev=n0"],
            stdin=subprocess.DEVNULL, start_new_session=True)
        listener.settimeout(30)
        try:
            self._control, _ = listener.accept()
        except TimeoutError:
            self.close()
            raise Missing("qemu-system-x86_64 does not start here") from None
        finally:
            listener.close()
        threading.Thread(target=self._listen, daemon=True).start()

    def boot(self, seconds=180):
        """False when the guest is not there in time; `console` says more."""
        try:
            return self._ready.get(timeout=seconds)
        except queue.Empty:
            return False

    def _listen(self):
        for line in self._control.makefile("r", errors="replace"):
            words = line.split()
            if words[:1] == ["READY"]:
                self._ready.put(True)
            elif words[:1] == ["GOT"] and len(words) == 2:
                self._commands[words[1]].taken.set()
            elif words[:1] == ["END"] and len(words) >= 3:
                output = base64.b64decode(words[3]).decode(errors="replace") if len(words) > 3 else ""
                self._commands[words[1]].finish(int(words[2]), output)

    def start(self, text):
        command = Command(text)
        encoded = base64.b64encode(text.encode()).decode()
        with self._speaking:
            name = str(len(self._commands))
            self._commands[name] = command
            for _ in range(10):
                self._control.sendall(f"{name} {len(encoded)} {encoded}\n".encode())
                if command.taken.wait(5):
                    break
        return command

    def run(self, text, seconds=60):
        """(exit status or None, output)"""
        command = self.start(text)
        return command.wait(seconds), command.output

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._scratch.cleanup()
