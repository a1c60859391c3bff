/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A forked child posts to the queue pair of its parent.
 * Finding: used-in-child
 */
#include <sys/wait.h>
#include <unistd.h>

#include "misuse.h"

int main(int argc, char **argv)
{
	static struct ends ends;
	pid_t child;
	int status;

	make_ends(&ends, argc, argv, 0);
	MUST((child = fork()) >= 0);
	if (child == 0) {
		if (clean)
			_exit(0);
		MUST(post_recv(ends.b, piece(&ends, 0, 64), 1) != 0);
		exit(0); /* --check makes it 66 */
	}
	MUST(waitpid(child, &status, 0) == child);
	destroy_ends(&ends);
	return WEXITSTATUS(status);
}
