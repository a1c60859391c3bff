# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rdma-core's own test suite, as Debian's python3-pyverbs brings it: what it asks of an RC device, connected by number
and GID or by rdma_cm. Some tests look at memory as soon as a Write has completed: on iWARP that says it has left, not
that it has arrived (RFC 5040 5.5), unless completions are acknowledged."""
import glob
import gzip
import os
import re
import shutil
import subprocess
import tempfile

from harness import Skipped, expect
from registry import LO4, case

PYTHON = "/usr/bin/python3"   # the one that Debian's modules are for
SUITE = "/usr/share/doc/rdma-core/tests"
TESTS = {
    "test_device.DeviceTest": ["test_dev_list", "test_open_dev", "test_phys_port_cnt_ex", "test_query_device",
                               "test_query_device_ex", "test_query_gid", "test_query_gid_ex", "test_query_gid_table",
                               "test_query_gid_table_bad_flow", "test_query_pkey", "test_query_port",
                               "test_query_port_bad_flow"],
    "test_pd.PDTest": ["test_alloc_pd", "test_dealloc_pd", "test_destroy_pd_twice", "test_multiple_pd_creation"],
    "test_atomic.AtomicTest": ["test_atomic_cmp_and_swap", "test_atomic_fetch_and_add", "test_atomic_invalid_lkey",
                               "test_atomic_invalid_mr_access", "test_atomic_invalid_qp_access",
                               "test_atomic_invalid_rkey", "test_atomic_non_aligned_addr"],
    "test_cq_events.CqEventsTestCase": ["test_cq_events_rc"],
    "test_cqex.CqExTestCase": ["test_rc_traffic_cq_ex"],
    "test_qpex.QpExTestCase": ["test_qp_ex_rc_atomic_cmp_swp", "test_qp_ex_rc_atomic_fetch_add",
                               "test_qp_ex_rc_rdma_read", "test_qp_ex_rc_rdma_read_zero_size",
                               "test_qp_ex_rc_rdma_write_imm", "test_qp_ex_rc_rdma_write_zero_length",
                               "test_qp_ex_rc_send"],
    "test_relaxed_ordering.RoTestCase": ["test_ro_rc_traffic"],
    # A UD queue pair and huge pages are what the others want.
    "test_parent_domain.ParentDomainTrafficTest": ["test_default_allocators_rc_traffic", "test_mem_align_rc_traffic",
                                                   "test_mem_align_srq_excq_rc_traffic",
                                                   "test_without_allocators_rc_traffic"],
    # Implicit, XRC and UD are not to be had; huge pages have to be reserved; test_odp_rc_rdma_write looks at once.
    "test_odp.OdpTestCase": ["test_odp_async_prefetch_rc_traffic", "test_odp_prefetch_async_no_page_fault_rc_traffic",
                             "test_odp_prefetch_sync_no_page_fault_rc_traffic", "test_odp_rc_atomic_cmp_and_swp",
                             "test_odp_rc_atomic_fetch_and_add", "test_odp_rc_rdma_read", "test_odp_rc_srq_traffic",
                             "test_odp_rc_traffic", "test_odp_sync_prefetch_rc_traffic"],
    "test_cq.CQAPITest": ["test_create_cq", "test_create_cq_bad_flow", "test_create_cq_with_comp_channel"],
    "test_cqex.CQEXAPITest": ["test_create_cq_ex", "test_create_cq_ex_bad_flow"],
    "test_mr.MRTest": ["test_reg_mr_bad_flags"],
    "test_mr.MWTest": ["test_reg_mw_wrong_type"],
    "test_qp.QPTest": ["test_create_rc_qp_ex_no_attr", "test_create_rc_qp_ex_with_attr", "test_create_rc_qp_no_attr",
                       "test_create_rc_qp_with_attr", "test_query_rc_qp"],
    # test_rdmacm_async_traffic wants the ACK timeout of an InfiniBand queue pair, test_..._external_qp an event that
    # iWARP's rdma_cm does not have.
    "test_rdmacm.CMTestCase": ["test_rdmacm_async_read", "test_rdmacm_async_reject_traffic", "test_rdmacm_async_write",
                               "test_rdmacm_sync_traffic"],
}

ACKNOWLEDGED = {
    "test_mr.MRTest": ["test_mr_rereg_access", "test_mr_rereg_addr"],
    "test_mr.MWTest": ["test_invalidate_mw_type1", "test_mw_type1", "test_mw_type2", "test_mw_type2_invalidate_dealloc",
                       "test_mw_type2_invalidate_local", "test_mw_type2_invalidate_remote"],
    "test_odp.OdpTestCase": ["test_odp_rc_rdma_write"],
    "test_qpex.QpExTestCase": ["test_qp_ex_rc_rdma_write"],
    "test_shared_pd.SharedPDTestCase": ["test_imported_rc_ex_rdma_write"],
}

# Of devices that are no RNICs.
ROCE = {
    "test_addr.AHTest": ["test_create_ah", "test_create_ah_roce", "test_destroy_ah"],
    "test_qp.QPTest": ["test_create_uc_qp_ex_no_attr", "test_create_uc_qp_ex_with_attr", "test_create_uc_qp_no_attr",
                       "test_create_uc_qp_with_attr", "test_query_uc_qp"],
}


def unpack(folder):
    """The suite with its compressed files unpacked, readable to everybody."""
    for path in glob.glob(os.path.join(SUITE, "*.py*")):
        name = os.path.basename(path)
        if name.endswith(".gz"):
            with gzip.open(path) as packed, open(os.path.join(folder, name[:-3]), "wb") as plain:
                shutil.copyfileobj(packed, plain)
        else:
            shutil.copy(path, folder)
    os.chmod(folder, 0o755)


def need_pyverbs():
    found = subprocess.run([PYTHON, "-c", "import pyverbs.device"], stderr=subprocess.DEVNULL, check=False)
    if found.returncode != 0:
        raise Skipped("needs pyverbs (package python3-pyverbs)")


def run_suite(world, tests, settings=None):
    need_pyverbs()
    if not os.path.isdir(SUITE):
        raise Skipped("needs the tests of pyverbs (package python3-pyverbs)")
    names = [f"{group}.{test}" for group, some in tests for test in some]
    with tempfile.TemporaryDirectory(prefix="uiwarp-pyverbs-") as folder:
        unpack(folder)
        tool = world.run("server", PYTHON, "-B", os.path.join(folder, "run_tests.py"), "-v", "--dev", "uiw_lo",
                         *[f"tests.{name}" for name in names], seconds=100, settings=settings)
    # A test that the suite skips for lack of something has shown nothing.
    expect(re.search(rf"^Ran {len(names)} tests", tool.output, re.M) is not None, "not every test was run", tool)
    expect(re.search(r"^OK$", tool.output, re.M) is not None, "some test failed or was skipped", tool)


@case("pyverbs-suite", worlds=LO4, seconds=120, serial=True)
def suite(world):
    """Alone: its ports are always the same."""
    run_suite(world, TESTS.items())


@case("pyverbs-acknowledged", worlds=["lo4-root"], seconds=120, serial=True)
def acknowledged(world):
    run_suite(world, [*TESTS.items(), *ACKNOWLEDGED.items()], {"UIWARP_COMPLETIONS": "acknowledged"})


@case("pyverbs-roce", worlds=["lo4-root"], seconds=120, serial=True)
def roce(world):
    run_suite(world, [*TESTS.items(), *ACKNOWLEDGED.items(), *ROCE.items()], {"UIWARP_FACE": "roce"})


@case("rsockets-rstream", worlds=LO4, seconds=60)
def rstream(world):
    """Sockets over RDMA: Writes with a Send behind each, and inline data that nobody asked for."""
    port = world.port()
    server = world.start_server("rstream", "-p", port, "-S", "16384", port=port)
    client = world.run("client", "rstream", "-s", world.server, "-p", port, "-S", "16384", seconds=40)
    world.finish(server, 20, 0, client)
    for end in (server, client):
        expect(re.search(r"^\S+\s+16k\s", end.output, re.M) is not None, "rstream printed no result", end)
