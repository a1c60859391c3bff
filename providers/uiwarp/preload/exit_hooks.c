/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The end of the process, of which the stack is told, and an instrument that asks for it (uiwarp_preload_watch). That
 * main() has returned no hook sees: what the C library calls then is its own. So main() is called by a function that
 * calls exit(), where UIWARP_CHECK is set; elsewhere it is not touched.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core.h"
#include "watch.h"

HOOK _Noreturn void exit(int status)
{
	const struct uiwarp_watcher *told = watching();

	if (__builtin_expect(told != NULL, 0))
		told->exiting();
	real()->exit(status);
	__builtin_unreachable();
}

/*
 * No destructor of libuiwarp.so.0 runs then: forked workers of Python's multiprocessing end so. The C library's own
 * calls, of exit() too, do not come here.
 */
HOOK _Noreturn void _exit(int status)
{
	const struct core *loaded = loaded_core();

	if (loaded)
		loaded->leave();
	real()->_exit(status);
	__builtin_unreachable();
}

HOOK _Noreturn void _Exit(int status)
{
	_exit(status);
}

static main_function *main_of_program;

static int call_main(int count, char **arguments, char **environment)
{
	exit(main_of_program(count, arguments, environment));
}

HOOK int __libc_start_main(main_function *main, int count, char **arguments, void (*init)(void), void (*fini)(void),
			   void (*end)(void), void *stack)
{
	if (secure_getenv("UIWARP_CHECK")) {
		main_of_program = main;
		main = call_main;
	}
	return real()->__libc_start_main(main, count, arguments, init, fini, end, stack);
}
