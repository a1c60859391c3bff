// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A library whose constructor uses hooked calls, maybe before the preload library's own ran. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void read_early(void)
{
	char text[16] = "";
	int fd = open("/sys/class/infiniband/uiw_lo/node_type", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0 || close(fd) != 0)
		return;
	if (strcmp(text, "4: RNIC\n") == 0)
		setenv("UIWARP_TEST_EARLY_RESULT", "read", 1);
}
