/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A program that knows nothing of RDMA: clears as many of its 8 bytes as it is told, which 9 are too many for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OWN_OPTIONS
/* What ASan's runtime asks of programs: this one has an answer of its own. */
const char *__asan_default_options(void);

__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
	char *bytes = malloc(8);

	if (argc != 2 || !bytes)
		return 2;
	memset(bytes, 0, strtoul(argv[1], NULL, 10));
	printf("cleared %s of 8, the first is %d\n", argv[1], bytes[0]);
	free(bytes);
	return 0;
}
