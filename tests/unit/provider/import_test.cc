// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// ibv_import_device() and its kin through the stock calls.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>

#include "support.h"

namespace uiw::provider_test {
namespace {

TEST_F(Verbs, AnImportedDeviceIsThatOfItsCommandDescriptor) {
  ibv_context* imported = ibv_import_device(dup(context_->cmd_fd));
  ASSERT_NE(imported, nullptr) << strerror(errno);
  EXPECT_STREQ(ibv_get_device_name(imported->device), "uiw_lo");
  EXPECT_EQ(imported->num_comp_vectors, context_->num_comp_vectors);
  EXPECT_NE(imported->async_fd, context_->async_fd);
  EXPECT_FALSE(readable(imported->async_fd));
  ibv_device_attr attr;
  EXPECT_EQ(ibv_query_device(imported, &attr), 0);
  const int fd = imported->cmd_fd;
  EXPECT_EQ(ibv_close_device(imported), 0);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);  // closed with it
}

// Every device of the list has a number of its own, which fstat() says of its descriptor.
TEST_F(Verbs, TheDeviceIsFoundByTheNumberOfItsDescriptor) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    ibv_context* opened = ibv_open_device(list[i]);
    if (!opened) continue;  // one that goes
    const std::string name = ibv_get_device_name(list[i]);
    struct stat status;
    EXPECT_EQ(fstat(opened->cmd_fd, &status), 0);
    EXPECT_TRUE(S_ISCHR(status.st_mode));
    ibv_context* imported = ibv_import_device(dup(opened->cmd_fd));
    EXPECT_NE(imported, nullptr) << name;
    if (imported) {
      EXPECT_EQ(ibv_get_device_name(imported->device), name);
      EXPECT_EQ(ibv_close_device(imported), 0);
    }
    EXPECT_EQ(ibv_close_device(opened), 0);
  }
  ibv_free_device_list(list);
}

TEST_F(Verbs, WhatIsNoDeviceCannotBeImported) {
  EXPECT_NULL_ERRNO(ibv_import_device(-1), EINVAL);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_NULL_ERRNO(ibv_import_device(ends[0]), EINVAL);
  close(ends[0]);
  close(ends[1]);
  const int fd = open("/dev/null", O_RDWR);
  EXPECT_NULL_ERRNO(ibv_import_device(fd), ENODEV);
  close(fd);
}

TEST_F(Verbs, HandlesOfNothingAreRefused) {
  EXPECT_NULL_ERRNO(ibv_import_pd(context_, pd_->handle + 100000), EINVAL);
  EXPECT_NULL_ERRNO(ibv_import_mr(pd_, pd_->handle), EINVAL);
}

TEST_F(Verbs, AnImportedRegionHasTheKeysOfTheOriginal) {
  char memory[64];
  ibv_mr* mr = reg(memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(mr, nullptr);
  ibv_context* imported = ibv_import_device(dup(context_->cmd_fd));
  ASSERT_NE(imported, nullptr);
  ibv_pd* pd = ibv_import_pd(imported, pd_->handle);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(pd->handle, pd_->handle);
  EXPECT_EQ(pd->context, imported);
  ibv_mr* region = ibv_import_mr(pd, mr->handle);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->lkey, mr->lkey);
  EXPECT_EQ(region->rkey, mr->rkey);
  EXPECT_EQ(region->length, sizeof memory);
  EXPECT_EQ(region->addr, nullptr);
  EXPECT_EQ(region->handle, mr->handle);
  EXPECT_EQ(region->context, imported);
  EXPECT_EQ(region->pd, pd);
  EXPECT_EQ(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  ibv_unimport_mr(region);
  ibv_unimport_pd(pd);
  EXPECT_EQ(ibv_close_device(imported), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace uiw::provider_test
